/** Parses ComfyUI workflows in API format, and recognizes the UI format (docs/protocols/images.md#workflow-formats). */
import { AppError, type ErrorIssue } from "../../errors.ts";
import { findJsonFault, isJsonObject } from "../../json/type_guards.ts";

/** One node. */
export interface WorkflowNode {
  class_type: string;
  /** Values, or links to other nodes: `["4", 0]`. */
  inputs: Record<string, unknown>;
  _meta?: { title?: unknown };
  [more: string]: unknown;
}

/** A workflow in API format: nodes by their ids. */
export type Workflow = Record<string, WorkflowNode>;

/** Issues named in one error. */
const MAX_ISSUES = 20;
const MAX_NODES = 5_000;

const PAGE_FORMAT =
  "this is a workflow as ComfyUI's page saves it, which only that page can run. Choose Workflow, Export (API) there " +
  "(in older versions: switch on Dev mode, then Save (API Format)) and take that file";

/**
 * Takes parsed JSON for a workflow.
 *
 * @throws {AppError} `unprocessable` when it is none in API format, with an issue for each reason
 */
export function parseWorkflow(json: unknown): Workflow {
  if (isPageFormat(json)) throw refused(PAGE_FORMAT, []);
  if (!isJsonObject(json)) throw refused("it is no object of nodes", []);
  const fault = findJsonFault(json);
  if (fault !== undefined) throw refused(fault, []);
  const nodes = Object.entries(json);
  if (nodes.length === 0) throw refused("it has no nodes", []);
  if (nodes.length > MAX_NODES) throw refused(`it has more than ${MAX_NODES} nodes`, []);
  const issues = nodes.flatMap(([id, node]) => issuesOf(id, node, json));
  if (issues.length > 0) throw refused(issues[0]!.message, issues.slice(0, MAX_ISSUES));
  return json as Workflow;
}

/** Says whether parsed JSON is a workflow as ComfyUI's page saves it. */
function isPageFormat(json: unknown): boolean {
  return isJsonObject(json) && Array.isArray(json.nodes) && (json.links !== undefined || json.version !== undefined);
}

/** Says what to call a node: `"KSampler" (node 3)`, with its title where it has one of its own. */
export function nodeName(id: string, node: WorkflowNode | undefined): string {
  const title = node?._meta?.title;
  const name = typeof title === "string" && title !== "" ? title : node?.class_type;
  return name === undefined ? `Node ${id}` : `"${name}" (node ${id})`;
}

function issuesOf(id: string, node: unknown, all: Record<string, unknown>): ErrorIssue[] {
  if (!isJsonObject(node) || typeof node.class_type !== "string" || !isJsonObject(node.inputs)) {
    return [{ path: id, message: `node ${id} has no class_type and inputs` }];
  }
  return Object.entries(node.inputs).flatMap(([name, value]) => {
    const isLink = Array.isArray(value) && value.length === 2 && typeof value[0] === "string" &&
      typeof value[1] === "number";
    if (!isLink || Object.hasOwn(all, value[0])) return [];
    return [{ path: `${id}.inputs.${name}`, message: `node ${id} wants node ${value[0]}, which is not there` }];
  });
}

function refused(reason: string, issues: ErrorIssue[]): AppError {
  return new AppError("unprocessable", `Cannot use the workflow: ${reason}`, { issues });
}
