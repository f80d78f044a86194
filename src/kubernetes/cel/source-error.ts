/** An error in an expression, with its offset in the source. */
export type SourceIssue = { readonly at: number; readonly message: string }

/** Thrown by the lexer and the parser, which stop at the first error. */
export class SyntaxIssue extends Error {
  readonly issue: SourceIssue

  constructor(at: number, message: string) {
    super(message)
    this.issue = { at, message }
  }
}

/** Formats issues as cel-go does: position, message, the line and a caret below it. */
export function formatIssues(source: string, issues: readonly SourceIssue[]): string {
  return [...issues]
    .sort((a, b) => a.at - b.at)
    .map(({ at, message }) => {
      const before = source.slice(0, at)
      const start = before.lastIndexOf('\n') + 1
      const end = source.indexOf('\n', at)
      const line = source.slice(start, end < 0 ? undefined : end).replaceAll('\t', ' ')
      const lineNumber = before.split('\n').length
      return `ERROR: <input>:${lineNumber}:${at - start + 1}: ${message}\n | ${line}\n | ${'.'.repeat(at - start)}^`
    })
    .join('\n')
}
