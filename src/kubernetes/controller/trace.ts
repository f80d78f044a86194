/** The part of an OpenTelemetry `Span` that is used here. */
export type Span = {
  setAttribute(name: string, value: string | number | boolean): unknown
  recordException(error: Error): void
  setStatus(status: { code: number; message?: string }): unknown
  end(): void
}

/**
 * The part of an OpenTelemetry `Tracer` that is used here: pass `trace.getTracer('my-operator')` of `@opentelemetry/api` or anything of
 * this shape. Nothing is imported, so tracing costs nothing unless it is used.
 */
export type Tracer = {
  startActiveSpan<T>(name: string, options: { attributes: Record<string, string | number> }, run: (span: Span) => T): T
}

/** `SpanStatusCode.ERROR` of OpenTelemetry. */
const errorStatus = 2

/** Attributes of the span of one attempt. */
export type Attempt = { controller: string; key: string; cluster: string | undefined; reconcileId: string; attempt: number }

/** Runs one attempt inside a span `reconcile <controller>`; spans that `run` starts become its children. */
export function traced(tracer: Tracer, { controller, key, cluster, reconcileId, attempt }: Attempt, run: () => unknown): Promise<unknown> {
  const attributes = {
    controller,
    key,
    'reconcile.id': reconcileId,
    'reconcile.attempt': attempt,
    ...(cluster !== undefined && { cluster }),
  }
  return tracer.startActiveSpan(`reconcile ${controller}`, { attributes }, async span => {
    try {
      return await run()
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown))
      span.recordException(error)
      span.setStatus({ code: errorStatus, message: error.message })
      throw thrown
    } finally {
      span.end()
    }
  })
}
