import type { Hash } from 'node:crypto'

// Not imported: node:crypto takes 5 ms of CPU time to load, and a one-shot worker needs it only after its registration is sent.
const crypto = () => process.getBuiltinModule('node:crypto')

export const createSha256 = (): Hash => crypto().createHash('sha256')

/** In hexadecimal. */
export const sha256 = (data: string | Uint8Array): string => crypto().hash('sha256', data)
