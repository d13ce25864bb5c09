/** Results of a check. */
import { messageOf } from "../errors.ts";
import { fillTemplate, type TextParams } from "../json/message_template.ts";
import { type FindingCode, FINDINGS, type RemediedCode } from "./finding_texts.ts";

/** One result. */
export interface Finding {
  /** `"note"` is information; a `"problem"` needs fixing. */
  level: "ok" | "note" | "problem";
  /** Message code; see finding_texts.ts. */
  code: FindingCode;
  /** Parameters of the message. */
  params: TextParams;
  /** What was checked and the result; a sentence without a period. */
  about: string;
  /** How to fix it; every problem has one. */
  remedy?: string;
}

/** Creates a finding for a check that passed. */
export function ok(code: FindingCode, params: TextParams = {}): Finding {
  return finding("ok", code, params);
}

/** Creates an informational finding. */
export function note(code: FindingCode, params: TextParams = {}): Finding {
  return finding("note", code, params);
}

/** Creates a problem with its remedy. */
export function problem(code: RemediedCode, params: TextParams = {}): Finding {
  return finding("problem", code, params);
}

/** Runs a check and converts its failure to a finding, with the message as `{error}`. */
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
  const about = fillTemplate(text.about, params);
  return {
    level,
    code,
    params,
    about,
    ...(text.remedy !== undefined && { remedy: fillTemplate(text.remedy, params) }),
  };
}
