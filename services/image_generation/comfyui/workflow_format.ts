/** ComfyUI's workflow formats. The API format is accepted, the UI format refused (docs/protocols/images.md, "Workflow formats"). */
import { AppError, type ErrorIssue } from "../../errors.ts";
import { findJsonFault, isJsonObject } from "../../json/type_guards.ts";

/** One node of a workflow. */
export interface WorkflowNode {
  class_type: string;
  /** Values, or links to other nodes: `["4", 0]`. */
  inputs: Record<string, unknown>;
  _meta?: { title?: unknown };
  [more: string]: unknown;
}

/** A workflow in API format: nodes by id. */
export type Workflow = Record<string, WorkflowNode>;

/** Issues per error. */
const MAX_ISSUES = 20;
const MAX_NODES = 5_000;

const UI_FORMAT = "it is in ComfyUI's UI format. In ComfyUI, choose Workflow, Export (API) " +
  "(older versions: turn on Dev mode, then Save (API Format)), and use that file";

/**
 * Validates a workflow.
 *
 * @throws {AppError} `unprocessable` if it isn't in API format, with an issue for each reason
 */
export function parseWorkflow(json: unknown): Workflow {
  if (isUiFormat(json)) throw createFormatError(UI_FORMAT, []);
  if (!isJsonObject(json)) throw createFormatError("it isn't an object of nodes", []);
  const fault = findJsonFault(json);
  if (fault !== undefined) throw createFormatError(fault, []);
  const nodes = Object.entries(json);
  if (nodes.length === 0) throw createFormatError("it has no nodes", []);
  if (nodes.length > MAX_NODES) throw createFormatError(`it has more than ${MAX_NODES} nodes`, []);
  const issues = nodes.flatMap(([id, node]) => checkNode(id, node, json));
  if (issues.length > 0) throw createFormatError(issues[0]!.message, issues.slice(0, MAX_ISSUES));
  return json as Workflow;
}

/** Reports whether JSON is a workflow in UI format. */
function isUiFormat(json: unknown): boolean {
  return isJsonObject(json) && Array.isArray(json.nodes) && (json.links !== undefined || json.version !== undefined);
}

/** Returns a node's name for messages, with its title if it has one: `"KSampler" (node 3)`. */
export function getNodeName(id: string, node: WorkflowNode | undefined): string {
  const title = node?._meta?.title;
  const name = typeof title === "string" && title !== "" ? title : node?.class_type;
  return name === undefined ? `Node ${id}` : `"${name}" (node ${id})`;
}

function checkNode(id: string, node: unknown, all: Record<string, unknown>): ErrorIssue[] {
  if (!isJsonObject(node) || typeof node.class_type !== "string" || !isJsonObject(node.inputs)) {
    return [{ path: id, message: `node ${id} has no class_type and inputs` }];
  }
  return Object.entries(node.inputs).flatMap(([name, value]) => {
    const isLink = Array.isArray(value) && value.length === 2 && typeof value[0] === "string" &&
      typeof value[1] === "number";
    if (!isLink || Object.hasOwn(all, value[0])) return [];
    return [{ path: `${id}.inputs.${name}`, message: `node ${id} is linked to node ${value[0]}, which doesn't exist` }];
  });
}

function createFormatError(reason: string, issues: ErrorIssue[]): AppError {
  return new AppError("unprocessable", `Can't use the workflow: ${reason}`, { issues });
}
