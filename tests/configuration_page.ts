/** Writes docs/configuration.md from the table of configuration keys: `deno task docs`. */
import { configurationPage } from "../services/config_text.ts";

await Deno.writeTextFile(new URL("../docs/configuration.md", import.meta.url), configurationPage());
