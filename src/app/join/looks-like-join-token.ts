export const joinTokenPrefix = 'oarlock1'

/** Whether a text is a join token, also a truncated one, and no other kind of credential. */
export const looksLikeJoinToken = (text: string): boolean => text.startsWith(`${joinTokenPrefix}.`)
