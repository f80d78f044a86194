/** What {@link isSubjectName} allows, for messages. */
export const allowedSubjectName = 'a name without control, invisible or reversing characters and without spaces at its ends'

/**
 * Whether text is accepted as the name of a user or group to impersonate: a header carries it unchanged, as UTF-8, and a reader sees all of it.
 * Servers remove spaces at the ends of a header, so that ` system:admin` would arrive as `system:admin`; `admin\u200b` looks like `admin`.
 */
export const isSubjectName = (text: string): boolean =>
  text === text.trim() && text.isWellFormed() && !/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/u.test(text)
