/** The files of a backup after its manifest, in this order. */
export const backupFiles = { objects: 'objects.db', states: 'states.db', logs: 'logs.tar', keys: 'keys.json' } as const
