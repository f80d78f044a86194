import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { KubeObject } from '../../object/index.ts'
import { Store, stringifyAsciiJson } from './index.ts'

export { encryptionKeyNames as keyNames } from './encryption-config.ts'

// For the tests of encrypted rows.

export async function withDirectories(count: number, use: (...directories: string[]) => Promise<void>): Promise<void> {
  const directories = Array.from({ length: count }, () => mkdtempSync(join(tmpdir(), 'oarlock-encryption-')))
  try {
    await use(...directories)
  } finally {
    for (const directory of directories) rmSync(directory, { recursive: true, force: true })
  }
}

export const secret = (name: string, value: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'Secret',
  metadata: { name, namespace: 'default', uid: `uid-${name}`, resourceVersion: '', creationTimestamp: '' },
  data: { password: value },
})

/** Closes the store also when `use` fails: its thread would keep the test process alive. */
export async function withStore<T>(dataDir: string, use: (store: Store) => Promise<T> | T): Promise<T> {
  const store = await Store.open({ dataDir })
  try {
    return await use(store)
  } finally {
    await store.close()
  }
}

export async function putSecret(store: Store, name: string, value: string): Promise<void> {
  const table = store.table('secrets')
  await store.put(table, store.head(table, `default/${name}`), secret(name, value))
}

export const passwordsOf = (store: Store): Record<string, string> =>
  Object.fromEntries(
    store
      .table('secrets')
      .snapshot()
      .map(({ name, text }) => [name, (JSON.parse(text) as { data: { password: string } }).data.password]),
  )

/** Names of the files directly in a directory that contain the text. */
export const filesWith = (directory: string, text: string): string[] =>
  readdirSync(directory, { withFileTypes: true })
    .filter(entry => entry.isFile() && readFileSync(join(directory, entry.name), 'latin1').includes(text))
    .map(entry => entry.name)

/** Runs SQL on the database of a stopped server. */
export function withDatabase<T>(dataDir: string, use: (db: DatabaseSync) => T): T {
  const db = new DatabaseSync(join(dataDir, 'oarlock.db'))
  try {
    return use(db)
  } finally {
    db.close()
  }
}

/** A database as the version before encryption wrote it, with Secrets in clear text: stored ones, and deleted ones in free pages. */
export function makeClearDatabase(dataDir: string, stored: Record<string, string>, deleted: Record<string, string>): void {
  withDatabase(dataDir, db => {
    db.exec(`PRAGMA journal_mode=WAL;
      CREATE TABLE object (id INTEGER PRIMARY KEY, resource TEXT NOT NULL, key TEXT NOT NULL, revision INTEGER NOT NULL, value TEXT NOT NULL, checksum INTEGER);
      CREATE TABLE resource (name TEXT PRIMARY KEY, revision INTEGER NOT NULL) WITHOUT ROWID;
      CREATE TABLE meta (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
      PRAGMA user_version=2`)
    const insert = db.prepare('INSERT INTO object VALUES (?, ?, ?, ?, ?, NULL)')
    let id = 0
    for (const [name, value] of Object.entries({ ...stored, ...deleted })) {
      const object = secret(name, value)
      object.metadata.resourceVersion = String(++id)
      insert.run(id, 'secrets', `default/${name}`, id, stringifyAsciiJson(object))
    }
    for (const name of Object.keys(deleted)) db.prepare('DELETE FROM object WHERE key = ?').run(`default/${name}`)
    db.prepare("INSERT INTO resource VALUES ('secrets', ?)").run(id)
  })
}
