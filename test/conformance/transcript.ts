import { readFileSync, writeFileSync } from 'node:fs'

/**
 * A transcript is a readable conversation with an API server; the README describes its syntax. `printTranscript(parseTranscript(text))` is
 * `text`, so that recording changes only the responses.
 */
export type Transcript = { file: string; intro: string; cases: Case[] }

/** A heading and its steps. The cases of a file are played in order and share a namespace. */
export type Case = { title: string; comment: string; steps: Step[] }

export type Step = {
  /** An HTTP method, or one of the verbs in `verbs`. */
  verb: string
  /** The path, or the name of a watch. */
  target: string
  headers: [name: string, value: string][]
  directives: Partial<Record<Directive, string>>
  body: string
  /** The normalized response of kube-apiserver. */
  response: string
  /** Why the embedded server responds differently, and the lines that differ. */
  differs?: { reason: string; lines: string }
}

const directives = ['as', 'show', 'hide', 'save', 'until', 'raw'] as const
export type Directive = (typeof directives)[number]

const stepLine = /^(GET|HEAD|OPTIONS|POST|PUT|DELETE|PATCH|JSON-PATCH|MERGE-PATCH|STRATEGIC-PATCH|APPLY|WATCH|EVENTS|CLOSE)(?: +(\S.*))?$/
const responseLine = '----'
const differsLine = /^---- differs: (.+)$/

export function readTranscript(file: string): Transcript {
  return parseTranscript(file, readFileSync(file, 'utf8'))
}

export function writeTranscript(transcript: Transcript): void {
  writeFileSync(transcript.file, printTranscript(transcript))
}

export function parseTranscript(file: string, text: string): Transcript {
  const lines = text.split('\n')
  const transcript: Transcript = { file, intro: '', cases: [] }
  let at = 0
  const fail = (what: string): never => {
    throw new Error(`${file}:${at + 1}: ${what}`)
  }
  const isHeading = (line: string) => line.startsWith('== ')
  const take = (isEnd: (line: string) => boolean): string => {
    const start = at
    while (at < lines.length && !isEnd(lines[at]!)) at++
    return lines.slice(start, at).join('\n').trim()
  }
  const readStep = (): Step => {
    const [, verb = '', target = ''] = stepLine.exec(lines[at++]!)!
    const step: Step = { verb, target: target.trim(), headers: [], directives: {}, body: '', response: '' }
    for (; at < lines.length && lines[at] !== '' && lines[at] !== responseLine; at++) {
      const [, name = '', value = ''] = /^([A-Za-z-]+): *(.*)$/.exec(lines[at]!) ?? fail('expected "Header: value", an empty line or ----')
      if (isDirective(name)) step.directives[name] = value
      else step.headers.push([name, value])
    }
    step.body = take(line => line === responseLine || stepLine.test(line) || isHeading(line))
    if (lines[at] !== responseLine) return step
    at++
    step.response = take(line => isHeading(line) || stepLine.test(line) || differsLine.test(line))
    const differs = differsLine.exec(lines[at] ?? '')
    if (differs) {
      at++
      step.differs = { reason: differs[1]!.trim(), lines: take(line => isHeading(line) || stepLine.test(line)) }
    }
    return step
  }
  transcript.intro = take(isHeading)
  while (at < lines.length) {
    const title = lines[at++]!.slice(3).trim()
    const found: Case = { title, comment: take(line => isHeading(line) || stepLine.test(line)), steps: [] }
    while (at < lines.length && !isHeading(lines[at]!)) {
      if (!stepLine.test(lines[at]!)) fail('expected a request, WATCH, EVENTS, CLOSE or a heading')
      found.steps.push(readStep())
    }
    transcript.cases.push(found)
  }
  return transcript
}

export function printTranscript({ intro, cases }: Transcript): string {
  const parts = intro ? [intro] : []
  for (const { title, comment, steps } of cases) {
    parts.push(`== ${title}${comment ? `\n${comment}` : ''}`)
    for (const step of steps) {
      const head = [`${step.verb} ${step.target}`.trim()]
      for (const [name, value] of step.headers) head.push(`${name}: ${value}`)
      for (const name of directives) if (step.directives[name] !== undefined) head.push(`${name}: ${step.directives[name]}`.trim())
      let text = head.join('\n')
      if (step.body) text += `\n\n${step.body}`
      text += `\n${responseLine}\n${step.response}`
      if (step.differs) text += `\n---- differs: ${step.differs.reason}\n${step.differs.lines}`
      parts.push(text.trimEnd())
    }
  }
  return `${parts.join('\n\n')}\n`
}

function isDirective(name: string): name is Directive {
  return (directives as readonly string[]).includes(name)
}
