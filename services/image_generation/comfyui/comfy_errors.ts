/** What ComfyUI says of workflows it refuses and of runs that fail, in words an owner can act on. Never its tracebacks. */
import { AppError, type ErrorIssue } from "../../errors.ts";
import { withoutPaths } from "../backend_http.ts";
import { asObject } from "../../json/type_guards.ts";
import { nodeName, type Workflow } from "./workflow_format.ts";

const MAX_ISSUES = 20;
const MAX_WORDS = 400;

/**
 * Makes the error for a workflow that the server refused.
 *
 * @returns `undefined` when the answer does not say that the workflow is at fault.
 */
export function refusedWorkflow(status: number, text: string, workflow: Workflow): AppError | undefined {
  if (status !== 400) return undefined;
  let answer: Record<string, unknown>;
  try {
    answer = asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
  const issues = issuesIn(answer.node_errors, workflow);
  const reason = issues[0]?.message ?? reasonIn(answer.error);
  if (reason === undefined) return undefined;
  const others = issues.length > 1 ? `, and ${issues.length - 1} more` : "";
  return new AppError("unprocessable", `The image server refuses the workflow: ${reason}${others}`, { issues });
}

/** Gives a sentence for each part of a workflow that the server took but does not run. */
export function warningsOf(nodeErrors: unknown, workflow: Workflow): string[] {
  return issuesIn(nodeErrors, workflow).map(({ message }) => `A part of the workflow was left out: ${message}`);
}

/** Makes the error for a run that failed or was ended by somebody else. */
export function failedRun(failure: { type: string; data: Record<string, unknown> } | undefined, workflow: Workflow) {
  if (failure === undefined) return new AppError("upstream_error", "The image server could not draw the picture");
  const { node_id: id, exception_message: message } = failure.data;
  if (failure.type === "execution_interrupted") {
    return new AppError("upstream_error", "The picture was stopped on the image server itself");
  }
  const name = nodeName(String(id), workflow[String(id)]);
  return new AppError(
    "upstream_error",
    `The image server failed at ${name}: ${wordsOf(message) ?? "it does not say why"}`,
  );
}

function issuesIn(nodeErrors: unknown, workflow: Workflow): ErrorIssue[] {
  return Object.entries(asObject(nodeErrors)).flatMap(([id, entry]) => {
    const errors = asObject(entry).errors;
    const name = nodeName(id, workflow[id]);
    return (Array.isArray(errors) ? errors : []).map((error) => {
      const { type, message, details, extra_info: extra } = asObject(error);
      const { input_name: input, received_value: value } = asObject(extra);
      const path = typeof input === "string" ? `${id}.inputs.${input}` : id;
      return { path, message: `${name}: ${sentenceOf(String(type), { input, value, message, details })}` };
    });
  }).slice(0, MAX_ISSUES);
}

function sentenceOf(
  type: string,
  { input, value, message, details }: Record<"input" | "value" | "message" | "details", unknown>,
): string {
  const shown = typeof value === "string" || typeof value === "number"
    ? `"${String(value).slice(0, 100)}"`
    : "its value";
  switch (type) {
    case "value_not_in_list":
      return input === "ckpt_name"
        ? `the checkpoint ${shown} is not installed on the image server`
        : `${shown} is nothing that the image server has for ${input}`;
    case "required_input_missing":
      return `its input ${input ?? wordsOf(details)} is missing`;
    case "value_smaller_than_min":
      return `${shown} is too small for ${input}`;
    case "value_bigger_than_max":
      return `${shown} is too large for ${input}`;
    case "invalid_input_type":
      return `${shown} is of the wrong type for ${input}`;
    case "exception_during_validation":
    case "exception_during_inner_validation":
      return `its input ${input ?? ""} cannot be followed: a node it leads to is missing or broken`.replace("  ", " ");
    default:
      return [wordsOf(message), wordsOf(details)].filter((words) => words !== undefined).join(": ") || type;
  }
}

function reasonIn(error: unknown): string | undefined {
  if (typeof error === "string") return wordsOf(error);
  const { message, details } = asObject(error);
  return [wordsOf(message), wordsOf(details)].filter((words) => words !== undefined).join(": ") || undefined;
}

function wordsOf(value: unknown): string | undefined {
  if (typeof value !== "string" || value.trim() === "") return undefined;
  return withoutPaths(value.trim().split("\n")[0]!).replace(/\.+$/, "").slice(0, MAX_WORDS);
}
