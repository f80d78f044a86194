/** Returns a function that calls `onChange` if the credential has changed since its previous call; a fixed credential never does. */
export function observeCredential(token: string | (() => string), onChange: (token: string) => void): () => void {
  let previous: string | undefined
  return () => {
    if (typeof token === 'string') return
    const current = token()
    if (previous !== undefined && previous !== current) onChange(current)
    previous = current
  }
}
