import { maxInlineBytes, type StackSource } from '../../api/index.ts'
import { forbiddenField, invalidValue, requiredValue, type StatusCause } from '../../kubernetes/object/index.ts'
import { parseGitUrl, redactUrl } from './git-url.ts'

const field = 'spec.source'

/**
 * Errors of a source that do not depend on the worker: not exactly one of inline, path and git, file names that leave the directory, URLs
 * that git would interpret differently. Pure: uses neither disk nor network. Empty when the source is valid.
 */
export function validateSource(source: StackSource | undefined): StatusCause[] {
  const given = (['inline', 'path', 'git'] as const).filter(kind => source?.[kind] !== undefined)
  if (!source || given.length === 0) return [requiredValue(field, 'specify exactly one of inline, path, git')]
  if (given.length > 1) return [forbiddenField(field, `specify exactly one of inline, path, git; got ${given.join(' and ')}`)]
  if (source.inline) return inlineErrors(source.inline.files)
  if (source.path) return pathErrors(source.path.path)
  return gitErrors(source.git!)
}

function inlineErrors(files: Record<string, string> | undefined): StatusCause[] {
  const where = `${field}.inline.files`
  const names = Object.keys(files ?? {})
  if (!files || names.length === 0) return [requiredValue(where, 'specify at least one file')]
  const causes: StatusCause[] = []
  let bytes = 0
  for (const name of names) {
    const error = relativePathError(name)
    if (error) causes.push(invalidValue(`${where}[${shorten(name)}]`, shorten(name), error))
    bytes += Buffer.byteLength(files[name] ?? '')
  }
  if (bytes > maxInlineBytes) {
    const message = `Too long: the files have ${bytes} bytes in total, may not be more than ${maxInlineBytes} bytes; put them in a git repository`
    causes.push({ reason: 'FieldValueTooLong', message, field: where })
  }
  const allNames = new Set(names)
  for (const name of names) {
    for (let slash = name.indexOf('/'); slash > 0; slash = name.indexOf('/', slash + 1)) {
      const parent = name.slice(0, slash)
      if (allNames.has(parent)) {
        causes.push(
          invalidValue(
            `${where}[${shorten(name)}]`,
            shorten(name),
            `${JSON.stringify(shorten(parent))} is also a file, so it cannot be a directory`,
          ),
        )
      }
    }
  }
  return causes
}

function pathErrors(path: string): StatusCause[] {
  const where = `${field}.path.path`
  if (!path) return [requiredValue(where, 'specify an absolute directory of the worker')]
  const error = !path.startsWith('/')
    ? 'must be an absolute path, such as /srv/stacks/network'
    : path.split('/').includes('..')
      ? 'must not contain ".."'
      : hasControlCharacter(path)
        ? 'must not contain control characters'
        : undefined
  return error ? [invalidValue(where, shorten(path), error)] : []
}

function gitErrors(git: NonNullable<StackSource['git']>): StatusCause[] {
  const causes: StatusCause[] = []
  const where = `${field}.git`
  if (!git.url) causes.push(requiredValue(`${where}.url`, 'specify an https://, ssh:// or file:// URL, or git@host:path'))
  else {
    const url = parseGitUrl(git.url)
    if (url.kind === 'invalid') causes.push(invalidValue(`${where}.url`, shorten(redactUrl(git.url)), url.reason))
  }
  const refs = (['branch', 'tag', 'commit'] as const).filter(name => git[name] !== undefined)
  if (refs.length > 1) causes.push(forbiddenField(where, `specify at most one of branch, tag, commit; got ${refs.join(' and ')}`))
  for (const name of ['branch', 'tag'] as const) {
    const error = git[name] === undefined ? undefined : refNameError(git[name])
    if (error) causes.push(invalidValue(`${where}.${name}`, shorten(git[name]!), error))
  }
  if (git.commit !== undefined && !/^[0-9a-f]{40}([0-9a-f]{24})?$/.test(git.commit)) {
    causes.push(invalidValue(`${where}.commit`, shorten(git.commit), 'must be a full commit hash: 40 or 64 lower-case hexadecimal digits'))
  }
  if (git.directory !== undefined && git.directory !== '' && git.directory !== '.') {
    const error = relativePathError(git.directory.replace(/^\.\//, '').replace(/\/$/, ''))
    if (error) causes.push(invalidValue(`${where}.directory`, shorten(git.directory), error))
  }
  return causes
}

/** Why `path` is not a relative path below its directory; undefined when it is. */
function relativePathError(path: string): string | undefined {
  if (path === '') return 'must not be empty'
  if (path.startsWith('/')) return 'must be relative: must not start with "/"'
  if (hasControlCharacter(path)) return 'must not contain control characters'
  if (path.includes('\\')) return 'must not contain a backslash: separate directories with "/"'
  if (Buffer.byteLength(path) > 1024) return 'must not be longer than 1024 bytes'
  for (const part of path.split('/')) {
    if (part === '..') return 'must not contain ".."'
    if (part === '' || part === '.') return 'must not contain empty or "." parts'
    if (Buffer.byteLength(part) > 255) return 'must not contain parts longer than 255 bytes'
    if (part.toLowerCase() === '.git') return 'must not contain ".git"'
  }
  return undefined
}

// The rules of git check-ref-format, and no leading dash, which git would parse as an option.
function refNameError(name: string): string | undefined {
  if (name === '') return 'must not be empty'
  if (name.startsWith('-')) return 'must not start with "-"'
  const isInvalid =
    hasControlCharacter(name) ||
    /[ ~^:?*[\\]|\.\.|@\{|\/\/|\/$|^\/|\.$|^@$/.test(name) ||
    name.split('/').some(part => part.startsWith('.') || part.endsWith('.lock'))
  return isInvalid ? 'must be a valid git ref name without refs/heads/ or refs/tags/, such as main or v1.2.0' : undefined
}

function hasControlCharacter(text: string): boolean {
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (code < 32 || code === 127) return true
  }
  return false
}

function shorten(text: string): string {
  return text.length > 200 ? `${text.slice(0, 200)}…` : text
}
