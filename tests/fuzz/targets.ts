/** All fuzz targets: the readers of foreign content. */
import type { FuzzTarget } from "./target.ts";
import { CARDS } from "./targets/cards.ts";
import { CHARX } from "./targets/charx.ts";
import { DOCUMENTS } from "./targets/documents.ts";
import { FORMS } from "./targets/forms.ts";
import { GGUF } from "./targets/gguf.ts";
import { IMPORTS } from "./targets/imports.ts";
import { LOREBOOKS } from "./targets/lorebooks.ts";
import { MACROS } from "./targets/macros.ts";
import { MARKDOWN } from "./targets/markdown.ts";
import { PRESETS } from "./targets/presets.ts";
import { SSE } from "./targets/sse.ts";

/** In the order in which they run. */
export const TARGETS: readonly FuzzTarget[] = [
  MACROS,
  MARKDOWN,
  CARDS,
  CHARX,
  DOCUMENTS,
  PRESETS,
  LOREBOOKS,
  IMPORTS,
  SSE,
  GGUF,
  FORMS,
];
