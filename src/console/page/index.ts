/**
 * @module console/page: what runs in the browser. Start reading at `main.tsx`; `scripts/build-console.mjs` builds it.
 * In: the stream of the server (`stream/`), which is one for all tabs of a browser, and the address, which has the page, the filter and the order
 * (`router.ts`). Out: what the user does, one request for each object.
 * `shell/` is around every page, `table/` shows every list, `overview/` and `object/` are the other pages, `parts/` are shared elements.
 * Out of scope: filtering, sorting and counting, which the server does. Nothing here imports Node or the rest of Oarlock but `console/protocol`.
 */
import './main.tsx'
