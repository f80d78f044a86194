export function Logo() {
  return (
    <span class="logo">
      <svg viewBox="0 0 32 32" aria-hidden="true">
        <rect width="32" height="32" rx="8" />
        <path d="M9 8v8a7 7 0 0 0 14 0V8M16 23v4" />
      </svg>
      Oarlock
    </span>
  )
}
