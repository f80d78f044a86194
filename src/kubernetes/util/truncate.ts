/** Cuts text to `maxChars` characters, with an ellipsis where it was longer. */
export function truncateText(text: string, maxChars: number): string {
  return text.length > maxChars ? `${text.slice(0, maxChars)}…` : text
}
