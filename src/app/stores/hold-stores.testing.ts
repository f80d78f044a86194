// Opens the stores of the directory in argv and holds them until it is killed.
import { silentLog } from '../../kubernetes/controller/index.ts'
import { openStores } from './stores.ts'

const stores = await openStores({ dataDir: process.argv[2] ?? '', log: silentLog })
process.stdout.write(`${stores.id}\n`)
process.stdin.resume()
