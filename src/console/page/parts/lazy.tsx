import type { ComponentType, VNode } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Empty } from './empty.tsx'

/** A component that is loaded when it is shown first. */
export function lazy<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  let Loaded: ComponentType<P> | undefined
  return function Lazy(props: P): VNode {
    const [failure, setFailure] = useState<string>()
    const [, setLoaded] = useState(Loaded)
    useEffect(() => {
      if (Loaded) return
      load().then(
        component => {
          Loaded = component
          setLoaded(() => component)
        },
        (error: unknown) => setFailure((error as Error).message),
      )
    }, [])
    if (Loaded) return <Loaded {...props} />
    if (failure === undefined) return <div class="loading" aria-busy="true" />
    return (
      <Empty title="This part of the page could not be loaded">
        <p>The server may have a new version. Reload the page.</p>
        <p class="muted">{failure}</p>
      </Empty>
    )
  }
}
