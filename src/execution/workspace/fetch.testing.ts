import { fetchSource } from './index.ts'

const [url, commit, directory, allowed, cacheDir, cacheBytes] = process.argv.slice(2) as [string, string, string, string, string, string?]
await fetchSource({ git: { url } }, commit, directory, {
  allowPaths: [allowed],
  signal: new AbortController().signal,
  cacheDir,
  cacheBytes: cacheBytes === undefined ? undefined : Number(cacheBytes),
})
process.disconnect?.()
