import { type FileHandle, open } from 'node:fs/promises'

/** A file of an archive. */
export type TarEntry = { readonly name: string; readonly size: number; readonly content: AsyncIterable<Uint8Array> | Iterable<Uint8Array> }
/** Where the content of a file is in its archive. */
export type TarPosition = { readonly name: string; readonly offset: number; readonly size: number }

const blockBytes = 512
const maxNameBytes = 100
const regular = '0'
/** The GNU extension for a name that does not fit into a header: an entry whose content is the name of the next one. */
const longName = 'L'
const maxOctalSize = 8 ** 11 - 1

/**
 * Writes regular files as a tar archive, which `tar` lists and extracts. Written here, because what is needed of the format is a header of 512 bytes.
 * @throws {Error} when a content is longer than its size. A shorter one is filled with zeros: a file that is read may be truncated meanwhile.
 */
export async function* writeTar(entries: AsyncIterable<TarEntry> | Iterable<TarEntry>): AsyncGenerator<Uint8Array> {
  for await (const { name, size, content } of entries) {
    const nameBytes = Buffer.from(name)
    if (nameBytes.length > maxNameBytes) {
      yield header('././@LongLink', longName, nameBytes.length + 1)
      yield padded(Buffer.concat([nameBytes, Buffer.alloc(1)]))
    }
    yield header(name, regular, size)
    let written = 0
    for await (const chunk of content) {
      written += chunk.byteLength
      if (written > size) throw new Error(`${name} has more than the ${size} bytes that were announced`)
      yield chunk
    }
    for (let missing = size - written + paddingOf(size); missing > 0; missing -= zeros.length) yield zeros.subarray(0, missing)
  }
  yield zeros.subarray(0, 2 * blockBytes)
}

/**
 * Yields the position of each file of the archive in the bytes from `start` to `end` (default: all) of a file.
 * @throws {Error} if it is not an archive, or not a whole one.
 */
export async function* readTar(path: string, range: { start?: number; end?: number } = {}): AsyncGenerator<TarPosition> {
  await using file = await open(path)
  const end = range.end ?? (await file.stat()).size
  let nextName: string | undefined
  for (let at = range.start ?? 0; ; ) {
    if (at + blockBytes > end) throw new Error(`it is cut off at byte ${end}`)
    const block = await readAt(file, at, blockBytes)
    if (block.every(byte => byte === 0)) return
    const { name, type, size } = parseHeader(block, at)
    const offset = at + blockBytes
    at = offset + size + paddingOf(size)
    if (at > end) throw new Error(`it is cut off in ${name}`)
    if (type === longName) {
      if (size > 4_096) throw new Error(`a name has ${size} bytes`)
      nextName = (await readAt(file, offset, size)).toString('utf8').replace(/\0.*$/s, '')
      continue
    }
    if (type !== regular) throw new Error(`${name} is not a regular file`)
    yield { name: nextName ?? name, offset, size }
    nextName = undefined
  }
}

const zeros = Buffer.alloc(64 * 1024)
const paddingOf = (size: number) => (blockBytes - (size % blockBytes)) % blockBytes
const padded = (bytes: Buffer) => Buffer.concat([bytes, zeros.subarray(0, paddingOf(bytes.length))])

function header(name: string, type: string, size: number): Buffer {
  const block = Buffer.alloc(blockBytes)
  Buffer.from(name).copy(block, 0, 0, maxNameBytes)
  block.write('0000600\0', 100)
  block.write('0000000\0', 108)
  block.write('0000000\0', 116)
  if (size <= maxOctalSize) block.write(`${size.toString(8).padStart(11, '0')}\0`, 124)
  else {
    // GNU's form for sizes above 8 GiB: a binary number, marked by its first bit.
    block.writeUInt8(0x80, 124)
    block.writeBigUInt64BE(BigInt(size), 128)
  }
  block.write('00000000000\0', 136)
  block.write(type, 156)
  block.write('ustar\x0000', 257)
  block.write(`${checksumOf(block).toString(8).padStart(6, '0')}\0 `, 148)
  return block
}

function parseHeader(block: Buffer, at: number): { name: string; type: string; size: number } {
  const text = (from: number, to: number) => block.toString('latin1', from, to).replace(/\0.*$/s, '').trim()
  const isValid = block.toString('latin1', 257, 262) === 'ustar' && Number.parseInt(text(148, 156), 8) === checksumOf(block)
  if (!isValid) throw new Error(`there is no valid header at byte ${at}`)
  const size = block[124] === 0x80 ? Number(block.readBigUInt64BE(128)) : Number.parseInt(text(124, 136), 8)
  if (!Number.isSafeInteger(size) || size < 0) throw new Error(`the header at byte ${at} has no valid size`)
  return { name: block.toString('utf8', 0, maxNameBytes).replace(/\0.*$/s, ''), type: text(156, 157) || regular, size }
}

/** The sum of the bytes of a header, with spaces in place of the checksum. */
function checksumOf(block: Buffer): number {
  let sum = 8 * 32
  for (const [index, byte] of block.entries()) if (index < 148 || index >= 156) sum += byte
  return sum
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(buffer, done, length - done, position + done)
    if (bytesRead === 0) throw new Error(`it is cut off at byte ${position + done}`)
    done += bytesRead
  }
  return buffer
}
