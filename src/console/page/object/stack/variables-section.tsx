import type { StackVariable, StackVariables, VariableSource } from '../../../protocol/index.ts'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { pathTo } from '../../router.ts'
import type { SectionProps } from './section-props.ts'
import { Value } from './value.tsx'

export function VariablesSection(props: SectionProps) {
  const { namespace, object } = props
  const part = usePart<StackVariables>(stackPath(props, 'variables'), object.metadata?.resourceVersion ?? '')
  const list = (variables: readonly StackVariable[]) => (
    <ul class="plain rows variables">
      {variables.map(variable => (
        <Variable key={`${variable.field} ${variable.name} ${JSON.stringify(variable.source)}`} variable={variable} namespace={namespace} />
      ))}
    </ul>
  )
  return (
    <PartView part={part} what="The variables">
      {({ variables, environment }) => (
        <>
          <section class="panel" aria-labelledby="variables-title">
            <h2 id="variables-title">Variables</h2>
            {variables.length === 0 ? (
              <p class="hint">The Stack has no variables: spec.variables and spec.variablesFrom add them.</p>
            ) : (
              list(variables)
            )}
          </section>
          {environment.length > 0 && (
            <section class="panel" aria-labelledby="environment-title">
              <h2 id="environment-title">Environment of the engine</h2>
              {list(environment)}
            </section>
          )}
        </>
      )}
    </PartView>
  )
}

function Variable({
  variable: { name, field, source, content, overriddenBy, problem },
  namespace,
}: {
  readonly variable: StackVariable
  readonly namespace: string
}) {
  return (
    <li class={overriddenBy === undefined ? '' : 'overridden'}>
      {name === undefined ? (
        <span>{source.kind === 'Stack' ? 'its other outputs' : 'all its keys'}</span>
      ) : (
        <code>{visibleText(name)}</code>
      )}
      <span>{problem === undefined ? <Value shown={content} /> : <span class="dim">{visibleText(problem)}</span>}</span>
      <span class="dim">
        <Source source={source} namespace={namespace} />
        <br />
        <code>{field}</code>
        {overriddenBy !== undefined && (
          <>
            , overridden by <code>{overriddenBy}</code>
          </>
        )}
      </span>
    </li>
  )
}

function Source({ source, namespace }: { readonly source: VariableSource; readonly namespace: string }) {
  switch (source.kind) {
    case 'Spec':
      return <>Value in the Stack</>
    case 'Stack':
      return (
        <>
          {source.output === undefined ? 'Outputs' : `Output ${source.output}`} of Stack{' '}
          <a href={pathTo(['stacks', namespace, source.name, 'outputs'])}>{source.name}</a>
        </>
      )
    default:
      return (
        <>
          {source.key === undefined ? 'Keys' : `Key ${source.key}`} of {source.kind} {source.name}
        </>
      )
  }
}
