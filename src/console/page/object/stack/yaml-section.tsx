import { useLayoutEffect, useRef, useState } from 'preact/hooks'
import type { StackYaml, YamlProblem, YamlRequest, YamlResult } from '../../../protocol/index.ts'
import { draftOf, keepDraft } from '../../drafts.ts'
import { Command } from '../../parts/command.tsx'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { request } from '../../request.ts'
import type { SectionProps } from './section-props.ts'

export function YamlSection(props: SectionProps) {
  const part = usePart<StackYaml>(stackPath(props, 'yaml'))
  return (
    <section class="panel" aria-labelledby="yaml-title">
      <h2 id="yaml-title">YAML</h2>
      <PartView part={part} what="The YAML">
        {shown => <Editor {...props} shown={shown} />}
      </PartView>
    </section>
  )
}

type Valid = Extract<YamlResult, { ok: true }> & {
  /** The text that the server has validated: only this one can be applied. */ readonly text: string
}

function Editor({ shown, ...props }: SectionProps & { readonly shown: StackYaml }) {
  const { namespace, name, object } = props
  const path = stackPath(props, 'yaml')
  const [draft] = useState(() => draftOf(path))
  const [base, setBase] = useState<StackYaml>(draft ? { ...shown, ...draft.base } : shown)
  const [text, setText] = useState(draft?.text ?? shown.yaml)
  const [isBusy, setBusy] = useState(false)
  const [valid, setValid] = useState<Valid>()
  const [problems, setProblems] = useState<readonly YamlProblem[]>([])
  const [result, setResult] = useState(draft ? 'These are your changes from before. They are not applied.' : '')
  const editor = useRef<HTMLTextAreaElement>(null)
  const { whyNoEdit } = base
  const isReadOnly = whyNoEdit !== undefined
  const hasChanged = object.metadata?.resourceVersion !== undefined && object.metadata.resourceVersion !== base.resourceVersion

  const isEdited = text !== base.yaml
  // Before the user can leave the page.
  useLayoutEffect(
    () => keepDraft(path, isEdited ? { text, base: { yaml: base.yaml, resourceVersion: base.resourceVersion } } : undefined),
    [text, base],
  )
  const send = async (apply: boolean) => {
    setBusy(true)
    setProblems([])
    setResult('')
    try {
      const from = await currentBase(base)
      const answer = await request<YamlResult>('POST', path, {
        yaml: text,
        resourceVersion: from.resourceVersion,
        apply,
      } satisfies YamlRequest)
      if (!answer.ok) {
        setValid(undefined)
        setProblems(answer.problems)
      } else if (apply) {
        // Also if the user has left the page.
        keepDraft(path, undefined)
        setValid(undefined)
        setResult(answer.diff.length === 0 ? 'Nothing was different.' : 'Applied.')
        setBase({ yaml: text, resourceVersion: answer.resourceVersion })
      } else setValid({ ...answer, text })
    } catch (error) {
      setProblems([{ message: (error as Error).message }])
    }
    setBusy(false)
  }
  /** A new version that only the status has changed shows the same text: it replaces the one that was shown. */
  const currentBase = async (known: StackYaml): Promise<StackYaml> => {
    if (!hasChanged) return known
    const now = await request<StackYaml>('GET', path)
    if (now.yaml !== known.yaml) return known
    setBase(now)
    return now
  }
  const loadAgain = async () => {
    if (isEdited && !confirm(`Discard your changes to the YAML of ${namespace}/${name}?`)) return
    setBusy(true)
    setProblems([])
    setValid(undefined)
    setResult('')
    try {
      const now = await request<StackYaml>('GET', path)
      setBase(now)
      setText(now.yaml)
      setResult('This is the Stack as it is now.')
    } catch (error) {
      setProblems([{ message: (error as Error).message }])
    }
    setBusy(false)
  }
  const select = (line: number) => {
    const lines = text.split('\n')
    const start = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0)
    editor.current?.focus()
    editor.current?.setSelectionRange(start, start + (lines[line - 1]?.length ?? 0))
  }
  const isValid = valid !== undefined && valid.text === text
  return (
    <>
      <label class="field">
        <span class="hidden">
          YAML of {namespace}/{name}
        </span>
        <textarea
          ref={editor}
          class="yaml"
          spellcheck={false}
          autocomplete="off"
          autocapitalize="off"
          wrap="off"
          rows={Math.min(36, Math.max(12, text.split('\n').length))}
          value={text}
          readOnly={isReadOnly}
          aria-invalid={problems.length > 0}
          aria-describedby="yaml-problems"
          onInput={event => {
            setText(event.currentTarget.value)
            setResult('')
          }}
        />
      </label>
      <div id="yaml-problems" role="alert">
        <ul class="plain problems">
          {problems.map(({ message, field, line }, index) => (
            <li key={index} class="problem">
              {line !== undefined && (
                <button type="button" class="small" onClick={() => select(line)}>
                  Line {line}
                </button>
              )}{' '}
              {field !== undefined && <code>{visibleText(field)}</code>} {visibleText(message)}
            </li>
          ))}
        </ul>
      </div>
      {isValid && <Changes {...valid} />}
      <p class="result" aria-live="polite">
        {result}
      </p>
      <div class="buttons">
        <button type="button" class={isValid ? '' : 'primary'} disabled={isBusy || isReadOnly} onClick={() => void send(false)}>
          Validate
        </button>
        <button
          type="button"
          class={isValid ? 'primary' : ''}
          disabled={isBusy || isReadOnly || !isValid || valid.diff.length === 0}
          onClick={() => void send(true)}
        >
          Apply
        </button>
        <button type="button" disabled={isBusy} onClick={() => void loadAgain()}>
          Load again
        </button>
      </div>
      <p class="hint">
        {isReadOnly
          ? `No changes: ${whyNoEdit}.`
          : 'The server validates the text first and shows what would change. It is applied only if the Stack has not changed since it was shown.'}
      </p>
      <Command text={`kubectl replace --dry-run=server -f stack.yaml -n ${namespace}`} />
      <Command text={`kubectl replace -f stack.yaml -n ${namespace}`} />
    </>
  )
}

function Changes({ diff }: Valid) {
  if (diff.length === 0) return <p class="result">The server accepts it. Nothing is different.</p>
  return (
    <>
      <p class="result">The server accepts it. This would change:</p>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keyboard */}
      <section class="plan-text" aria-label="Changes" tabIndex={0}>
        <pre>
          {diff.map(({ sign, text }, index) => (
            <span key={index} class={sign === '+' ? 'good' : sign === '-' ? 'bad' : 'dim'}>{`${sign} ${text}\n`}</span>
          ))}
        </pre>
      </section>
    </>
  )
}
