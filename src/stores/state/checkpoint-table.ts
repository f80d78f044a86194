import type { UpdateId } from './decide-journal.ts'
import type { StateFile } from './state-file.ts'

/** Which version the last checkpoint of an update is. A CLI without a journal sends the whole state after each change: only the last one is a version. */
export class CheckpointTable {
  readonly #file: StateFile

  constructor(file: StateFile) {
    this.#file = file
  }

  /** The version of the last checkpoint, if it is one of this update. */
  versionOf(stackUid: string, { epoch, runName, update }: UpdateId): number | undefined {
    const row = this.#file
      .sql('SELECT version FROM checkpoint WHERE stack_uid = ? AND epoch = ? AND run_name = ? AND update_number = ?')
      .get(stackUid, epoch, runName, update) as { version: number } | undefined
    return row?.version
  }

  set(stackUid: string, { epoch, runName, update }: UpdateId, version: number): void {
    this.#file.sql('INSERT OR REPLACE INTO checkpoint VALUES (?, ?, ?, ?, ?)').run(stackUid, epoch, runName, update, version)
  }
}
