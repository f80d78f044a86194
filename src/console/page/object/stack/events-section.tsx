import type { StackEvent } from '../../../protocol/index.ts'
import { Badge } from '../../parts/badge.tsx'
import { Command } from '../../parts/command.tsx'
import { PartView, stackPath, usePart } from '../../parts/part.tsx'
import { Age } from '../../parts/time.tsx'
import { visibleText } from '../../parts/visible-text.ts'
import { pathTo } from '../../router.ts'
import type { SectionProps } from './section-props.ts'

export function EventsSection(props: SectionProps) {
  const { namespace, name, object } = props
  const part = usePart<readonly StackEvent[]>(stackPath(props, 'events'), object.metadata?.resourceVersion ?? '')
  return (
    <section class="panel" aria-labelledby="events-title">
      <h2 id="events-title">Events</h2>
      <PartView part={part} what="The Events">
        {events => (
          <>
            {events.length === 0 && (
              <p class="hint">No Event of this Stack is kept: servers delete them after an hour, unless configured otherwise.</p>
            )}
            <ul class="plain rows events">
              {events.map(({ key, type, reason, message, count, lastMs, firstMs }) => (
                <li key={key}>
                  <Badge value={reason} tone={type === 'Warning' ? 'attention' : 'idle'} />
                  <span>
                    {visibleText(message)}
                    {count > 1 && (
                      <span class="dim">
                        {' '}
                        ({count} times in <Age ms={firstMs} />)
                      </span>
                    )}
                  </span>
                  <span class="number dim">
                    <Age ms={lastMs} />
                  </span>
                </li>
              ))}
            </ul>
            <p class="hint">
              After the first Run of the Stack, Runs for a change of the Stack, its source or its inputs, and drift checks, report no Event
              when they are created or succeed: <a href={pathTo(['runs'], { filter: `namespace:${namespace} stack:${name}` })}>all Runs</a>.
            </p>
          </>
        )}
      </PartView>
      <Command text={`kubectl events --for stack/${name} -n ${namespace}`} />
    </section>
  )
}
