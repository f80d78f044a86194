import { useState } from 'preact/hooks'
import type { StackOutput, StackOutputs } from '../../../protocol/index.ts'
import { Command } from '../../parts/command.tsx'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { request } from '../../request.ts'
import type { SectionProps } from './section-props.ts'
import { Value } from './value.tsx'

export function OutputsSection(props: SectionProps) {
  const { namespace, version } = props
  const part = usePart<StackOutputs>(stackPath(props, 'outputs'), version)
  return (
    <section class="panel" aria-labelledby="outputs-title">
      <h2 id="outputs-title">Outputs</h2>
      <PartView part={part} what="The outputs">
        {({ outputs, problem, secretName }) => (
          <>
            {outputs.length === 0 && <p class="hint">The Stack has no outputs that you may see.</p>}
            <ul class="plain rows values">
              {outputs.map(output => (
                <li key={output.name}>
                  <code>{visibleText(output.name)}</code>
                  {output.isSensitive ? <Sensitive path={stackPath(props, 'outputs')} output={output} /> : <Value shown={output} />}
                </li>
              ))}
            </ul>
            {problem !== undefined && <p class="hint">Not shown: {problem}.</p>}
            <Command text={`kubectl get secret ${secretName} -n ${namespace} -o yaml`} />
          </>
        )}
      </PartView>
    </section>
  )
}

/** A value that is read when the user asks for it, and forgotten when it is hidden again. */
function Sensitive({ path, output: { name } }: { readonly path: string; readonly output: StackOutput }) {
  const [value, setValue] = useState<{ readonly value: unknown }>()
  const [problem, setProblem] = useState('')
  const show = async () => {
    setProblem('')
    try {
      setValue(await request<{ value: unknown }>('GET', `${path}/${encodeURIComponent(name)}`))
    } catch (error) {
      setProblem((error as Error).message)
    }
  }
  return (
    <span class="sensitive">
      <Value shown={value ?? { hidden: true }} />
      <button
        type="button"
        class="small"
        aria-label={`${value ? 'Hide' : 'Show'} ${name}`}
        onClick={() => (value ? setValue(undefined) : void show())}
      >
        {value ? 'Hide' : 'Show'}
      </button>
      <span class="problem" role="alert">
        {problem}
      </span>
    </span>
  )
}
