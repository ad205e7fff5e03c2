/**
 * Keys may be 64 kB long and may hold anything; a message shows enough of one to find it, on one line.
 */
export const abbreviate = (text: string, most = 200): string => {
  const flat = text.length > most ? `${text.slice(0, most)}... (${text.length} characters)` : text
  return JSON.stringify(flat).slice(1, -1)
}
