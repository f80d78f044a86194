/** Options of the clients of users: of each session one. */
export const consoleClient = { userAgent: 'oarlock-console', fieldManager: 'oarlock-console', connections: 2 } as const
