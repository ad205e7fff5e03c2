/** What attackers write where a program expects a name. */
import { Arbitrary, Schema } from "effect"

/** Texts that mean something to some language, store or object on the way. */
export const texts: ReadonlyArray<string> = [
  "__proto__",
  "constructor",
  "toString",
  "hasOwnProperty",
  "valueOf",
  "then",
  "length",
  "0",
  "-1",
  "NaN",
  "null",
  "undefined",
  "true",
  "{}",
  "[]",
  "'; DROP TABLE chamvi_effect; --",
  "\"; DELETE FROM chamvi_effect WHERE \"1\"=\"1",
  "' OR '1'='1",
  "$1",
  "?1",
  ":key",
  "%s%n",
  "*",
  "k?y[a-z]*",
  "\\",
  "\\u0000",
  "]]; redis.call('FLUSHALL') --[[",
  "*1\r\n$8\r\nFLUSHALL\r\n",
  "key\r\nSet-Cookie: a=b",
  "{slot}key",
  "<!-- chamvi:effect=other -->",
  "--> <script>alert(1)</script>",
  "${process.exit(1)}",
  "../../../etc/passwd",
  "a:b:c",
  "a%3Ab",
  "\0",
  "a\0b",
  "a\0",
  "\u001b[2J",
  "\u202eevil",
  "\ufeff",
  "\u200b",
  "e\u0301",
  "\u00e9",
  "\u212b",
  "I\u0307",
  "ﬀ",
  "ß",
  "K",
  "k",
  "key",
  "key ",
  " key",
  "KEY",
  "\ud83c\udf89",
  "\ud800",
  "\udc00 \ud800",
  "a\ud83c",
  "\ufffd",
  "a\ufffd",
  "\u{10ffff}",
  " ",
  "",
  "\t\n",
  "k".repeat(1_000)
]

/** Any text, and hostile ones, alone and put together. */
export const text: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.schema(
    Schema.Array(
      Schema.Union([
        Schema.Literals(texts),
        Schema.Literals(texts),
        Schema.String,
        Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 0xffff }))
      ])
    )
  ),
  (parts) => parts.map((part) => typeof part === "number" ? String.fromCharCode(part) : part).join("")
)
