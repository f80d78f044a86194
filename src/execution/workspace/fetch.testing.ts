import { fetchSource } from './index.ts'

const [url, commit, directory, allowed, cacheDir] = process.argv.slice(2) as [string, string, string, string, string]
await fetchSource({ git: { url } }, commit, directory, { allowPaths: [allowed], signal: new AbortController().signal, cacheDir })
process.disconnect?.()
