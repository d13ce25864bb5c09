/** Explains ComfyUI's errors for refused workflows and failed runs. Tracebacks are never shown. */
import { AppError, type ErrorIssue } from "../../errors.ts";
import { removePaths } from "../backend_http.ts";
import { asObject } from "../../json/type_guards.ts";
import { getNodeName, type Workflow } from "./workflow_format.ts";

const MAX_ISSUES = 20;
const MAX_TEXT = 400;

/**
 * Creates the error for a workflow that the server refused.
 *
 * @returns undefined if the response doesn't blame the workflow
 */
export function createRefusalError(status: number, text: string, workflow: Workflow): AppError | undefined {
  if (status !== 400) return undefined;
  let response: Record<string, unknown>;
  try {
    response = asObject(JSON.parse(text));
  } catch {
    return undefined;
  }
  const issues = parseIssues(response.node_errors, workflow);
  const reason = issues[0]?.message ?? parseReason(response.error);
  if (reason === undefined) return undefined;
  const others = issues.length > 1 ? ` (and ${issues.length - 1} more)` : "";
  return new AppError("unprocessable", `The image server refused the workflow: ${reason}${others}`, { issues });
}

/** Returns a warning for each part of an accepted workflow that the server will not run. */
export function parseWarnings(nodeErrors: unknown, workflow: Workflow): string[] {
  return parseIssues(nodeErrors, workflow).map(({ message }) =>
    `The image server skipped a part of the workflow: ${message}`
  );
}

/** Creates the error for a run that failed or was stopped by another client. */
export function createRunError(
  failure: { type: string; data: Record<string, unknown> } | undefined,
  workflow: Workflow,
) {
  if (failure === undefined) return new AppError("upstream_error", "The image server couldn't generate the image");
  const { node_id: id, exception_message: message } = failure.data;
  if (failure.type === "execution_interrupted") {
    return new AppError("upstream_error", "The image was stopped on the image server");
  }
  const name = getNodeName(String(id), workflow[String(id)]);
  return new AppError(
    "upstream_error",
    `The image server failed at ${name}: ${readText(message) ?? "no reason given"}`,
  );
}

function parseIssues(nodeErrors: unknown, workflow: Workflow): ErrorIssue[] {
  return Object.entries(asObject(nodeErrors)).flatMap(([id, entry]) => {
    const errors = asObject(entry).errors;
    const name = getNodeName(id, workflow[id]);
    return (Array.isArray(errors) ? errors : []).map((error) => {
      const { type, message, details, extra_info: extra } = asObject(error);
      const { input_name: input, received_value: value } = asObject(extra);
      const path = typeof input === "string" ? `${id}.inputs.${input}` : id;
      return { path, message: `${name}: ${explainIssue(String(type), { input, value, message, details })}` };
    });
  }).slice(0, MAX_ISSUES);
}

function explainIssue(
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
        : `the image server doesn't have ${shown} for ${input}`;
    case "required_input_missing":
      return `the input ${input ?? readText(details)} is missing`;
    case "value_smaller_than_min":
      return `${shown} is too small for ${input}`;
    case "value_bigger_than_max":
      return `${shown} is too large for ${input}`;
    case "invalid_input_type":
      return `${shown} has the wrong type for ${input}`;
    case "exception_during_validation":
    case "exception_during_inner_validation":
      return `the input ${input ?? ""} is invalid: a node it is linked to is missing or broken`.replace("  ", " ");
    default:
      return [readText(message), readText(details)].filter((text) => text !== undefined).join(": ") || type;
  }
}

function parseReason(error: unknown): string | undefined {
  if (typeof error === "string") return readText(error);
  const { message, details } = asObject(error);
  return [readText(message), readText(details)].filter((text) => text !== undefined).join(": ") || undefined;
}

function readText(value: unknown): string | undefined {
  if (typeof value !== "string" || value.trim() === "") return undefined;
  return removePaths(value.trim().split("\n")[0]!).replace(/\.+$/, "").slice(0, MAX_TEXT);
}
