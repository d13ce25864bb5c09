/** JSON that is handed over as a file to be kept. */
import type { AppContext } from "../../middleware/env.ts";
import { attachment } from "./content_disposition.ts";
import { rawAnswer } from "../server/raw_response.ts";

/** Answers with a JSON file, indented as people read it. */
export function jsonFile(c: AppContext, fileName: string, json: unknown): never {
  const headers = { "Content-Type": "application/json", "Content-Disposition": attachment(fileName) };
  return rawAnswer(c.body(JSON.stringify(json, null, 4), 200, headers));
}
