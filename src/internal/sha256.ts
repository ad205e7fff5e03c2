import { hash } from "node:crypto"

/** SHA-256 of the UTF-8 text, in lower-case hex. */
export const sha256 = (text: string): string => hash("sha256", text, "hex")
