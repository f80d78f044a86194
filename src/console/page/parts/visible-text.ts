/** Control characters but tabs and line feeds, line separators, and what reverses text. */
const hidden = /[^\P{Cc}\t\n]|[\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

/** Text with visible escapes, such as `\u202e`, in place of these characters: with reversed text a plan or a log could look different from what it is. */
export const visibleText = (text: string): string =>
  text.replace(hidden, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
