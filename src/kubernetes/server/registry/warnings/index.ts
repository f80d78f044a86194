/**
 * @module registry/warnings: warnings about valid objects, with the text of kube-apiserver's `Warning` headers. Start reading at
 * `pod-templates.ts`.
 * In: a valid object and the one it replaces. Out: texts. Out of scope: validation errors (type-rules/, kinds/).
 */
export { addressWarnings } from './addresses.ts'
export { podNameWarnings, workloadNameWarnings } from './names.ts'
export { podWarnings, templateWarnings } from './pod-templates.ts'
export { tlsWarnings } from './tls-pair.ts'
export { claimSpecWarnings, claimWarnings, storageClassWarnings, volumeWarnings } from './volumes.ts'
