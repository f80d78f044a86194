/**
 * @module registry/warnings: what is stored and still not wise, in the words that kube-apiserver puts into `Warning` headers.
 * Start reading at `pod-templates.ts`.
 * In: a valid object, what it replaces. Out: texts. Not here: what is refused (type-rules/, kinds/).
 */
export { addressWarnings } from './addresses.ts'
export { podNameWarnings, workloadNameWarnings } from './names.ts'
export { podWarnings, templateWarnings } from './pod-templates.ts'
export { tlsWarnings } from './tls-pair.ts'
export { claimSpecWarnings, claimWarnings, storageClassWarnings, volumeWarnings } from './volumes.ts'
