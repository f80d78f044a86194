import { Type } from '../kubernetes/object/index.ts'
import { count } from './shared.ts'

/** What the status of a Stack records so that lost data is detected, and what the restore of a backup writes to it. */
export const recoveryFields = {
  stateVersion: Type.Optional(
    count('Number of the newest state version that a Run has stored. With an older state, or none, no Run is executed.'),
  ),
  minRunNumber: Type.Optional(
    count('The next Run has at least this number. The restore of a backup raises it above every number that may have been used since.'),
  ),
  restored: Type.Optional(
    Type.Object(
      {
        at: Type.String({ format: 'date-time', description: 'When the backup was restored; the value to accept.' }),
        backupAt: Type.Optional(Type.String({ format: 'date-time', description: 'When the backup was created.' })),
      },
      {
        description:
          'Set while a restored Stack waits for its review: only Plans that a user requests are executed. "oarlock restore accept" ends it.',
      },
    ),
  ),
}
