/** Control characters but tabs and line feeds, line separators, and what reverses text. */
const hidden = /[^\P{Cc}\t\n]|[\p{Zl}\p{Zp}\u202a-\u202e\u2066-\u2069]/gu

/** Text in which each character is seen where it is, such as `\u202e`: reversed, a plan or a log would be read as another one. */
export const visibleText = (text: string): string =>
  text.replace(hidden, found => `\\u${found.charCodeAt(0).toString(16).padStart(4, '0')}`)
