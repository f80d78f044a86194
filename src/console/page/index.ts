/**
 * @module console/page: what runs in the browser. Start reading at `main.tsx`; `scripts/build-console.mjs` bundles it.
 * In: the stream of views and the requests of `console/protocol`. Out: the page. One stream serves all tabs of a browser (`stream/`); tables show
 * only the rows that are visible and ask for no others (`table/`).
 * Out of scope: rights, filters, sorting and counts, which are the server's. Imports `console/protocol` and nothing else of Oarlock.
 */
export {}
