import type { DatabaseSync } from 'node:sqlite'
import type { Generation, GenerationStore } from '../discovery/index.ts'

/** The generation in the file with the identity of the stores. A new directory has generation 0. */
export function openGenerationStore(database: DatabaseSync, { isNew }: { isNew: boolean }): GenerationStore {
  database.exec('CREATE TABLE IF NOT EXISTS generation (number INTEGER NOT NULL, nonce TEXT NOT NULL, time TEXT NOT NULL)')
  if (isNew) database.exec('DELETE FROM generation')
  const select = database.prepare('SELECT number, nonce, time FROM generation')
  const write = ({ number, nonce, time }: Generation) => {
    database.exec('BEGIN')
    try {
      database.exec('DELETE FROM generation')
      database.prepare('INSERT INTO generation (number, nonce, time) VALUES (?, ?, ?)').run(number, nonce, time)
      database.exec('COMMIT')
    } catch (error) {
      // SQLite has rolled back already after some errors, such as a full disk.
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
  return {
    read: () => (select.get() as Generation | undefined) ?? { number: 0, nonce: '', time: '' },
    write,
  }
}
