/** The words of a filter, in any order and case. */
export const wordsOf = (filter: string): string[] => filter.toLowerCase().split(/\s+/).filter(Boolean)

export const matchesWords = (text: string, words: readonly string[]): boolean => {
  const lower = text.toLowerCase()
  return words.every(word => lower.includes(word))
}
