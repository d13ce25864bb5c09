/** What a look at the installation found. */
import { messageOf } from "../errors.ts";
import { filledText, type TextParams } from "../json/message_template.ts";
import { type FindingCode, FINDINGS, type RemediedCode } from "./finding_texts.ts";

/** One thing looked at. */
export interface Finding {
  /** `"note"` is worth knowing and nothing wrong; a `"problem"` is. */
  level: "ok" | "note" | "problem";
  /** Which of the sentences it is; see finding_texts.ts. */
  code: FindingCode;
  /** What stands in its places. */
  params: TextParams;
  /** What was looked at and how it is, a sentence without a period. */
  about: string;
  /** What to do about it; always there for a problem. */
  remedy?: string;
}

/** Gives a finding that all is well. */
export function ok(code: FindingCode, params: TextParams = {}): Finding {
  return finding("ok", code, params);
}

/** Gives something to know. */
export function note(code: FindingCode, params: TextParams = {}): Finding {
  return finding("note", code, params);
}

/** Gives something wrong, with its remedy. */
export function problem(code: RemediedCode, params: TextParams = {}): Finding {
  return finding("problem", code, params);
}

/** Looks, and takes a failure of the look itself for a finding; `{error}` is what it says. */
export async function looking(
  code: RemediedCode,
  params: TextParams,
  look: () => Finding[] | Promise<Finding[]>,
): Promise<Finding[]> {
  try {
    return await look();
  } catch (error) {
    return [problem(code, { ...params, error: messageOf(error) })];
  }
}

function finding(level: Finding["level"], code: FindingCode, params: TextParams): Finding {
  const text: { about: string; remedy?: string } = FINDINGS[code];
  const about = filledText(text.about, params);
  return { level, code, params, about, ...(text.remedy !== undefined && { remedy: filledText(text.remedy, params) }) };
}
