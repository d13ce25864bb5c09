/**
 * ComfyUI workflows: their format, the built-in one, and placeholders. The API format is accepted, and the UI format is
 * rejected.
 *
 * Placeholders are SillyTavern's: an input that is exactly `%name%` becomes the value with its type; inside a longer
 * text it becomes text. Values are never inserted into JSON source.
 *
 * @see docs/protocols/images.md, "Workflow formats" and "Placeholders"
 */
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

/** Maximum number of issues per error. */
const MAX_ISSUES = 20;
const MAX_NODES = 5_000;

const UI_FORMAT = "it's in ComfyUI's UI format. In ComfyUI, choose Workflow > Export (API) " +
  "(in older versions, turn on Dev mode, then choose Save (API Format)), and use that file";

/**
 * Validates a workflow.
 *
 * @throws {AppError} `unprocessable` if it isn't in API format, with an issue for each reason
 */
export function parseWorkflow(json: unknown): Workflow {
  if (isUiFormat(json)) throw createFormatError(UI_FORMAT, []);
  if (!isJsonObject(json)) throw createFormatError("it isn't a JSON object of nodes", []);
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

/** ID of the starter workflow. A file with this name overrides it. */
export const STARTER_ID = "starter";

/** The starter workflow. Previews its image instead of saving it, so that images don't fill the server's disk. */
export const STARTER_WORKFLOW: Workflow = {
  "3": {
    class_type: "KSampler",
    inputs: {
      seed: "%seed%",
      steps: "%steps%",
      cfg: "%scale%",
      sampler_name: "%sampler%",
      scheduler: "%scheduler%",
      denoise: "%denoise%",
      model: ["4", 0],
      positive: ["6", 0],
      negative: ["7", 0],
      latent_image: ["5", 0],
    },
    _meta: { title: "Sampler" },
  },
  "4": {
    class_type: "CheckpointLoaderSimple",
    inputs: { ckpt_name: "%model%" },
    _meta: { title: "Checkpoint" },
  },
  "5": {
    class_type: "EmptyLatentImage",
    inputs: { width: "%width%", height: "%height%", batch_size: 1 },
    _meta: { title: "Size" },
  },
  "6": {
    class_type: "CLIPTextEncode",
    inputs: { text: "%prompt%", clip: ["4", 1] },
    _meta: { title: "Prompt" },
  },
  "7": {
    class_type: "CLIPTextEncode",
    inputs: { text: "%negative_prompt%", clip: ["4", 1] },
    _meta: { title: "Negative prompt" },
  },
  "8": {
    class_type: "VAEDecode",
    inputs: { samples: ["3", 0], vae: ["4", 2] },
    _meta: { title: "Decode" },
  },
  "9": {
    class_type: "PreviewImage",
    inputs: { images: ["8", 0] },
    _meta: { title: "Picture" },
  },
};

/** Values by name. */
export type PlaceholderValues = Record<string, string | number>;

const WHOLE = /^%([a-z][a-z0-9_]*)%$/i;
const ANYWHERE = /%([a-z][a-z0-9_]*)%/gi;

/** Lists the names of the placeholders in a workflow, sorted. */
export function listPlaceholders(workflow: Workflow): string[] {
  const names = new Set<string>();
  mapTexts(workflow, (text) => {
    for (const [, name] of text.matchAll(ANYWHERE)) names.add(name!);
    return text;
  });
  return [...names].sort();
}

/**
 * Returns a copy of a workflow with its placeholders filled.
 *
 * @returns Also the names without a value; their placeholders stay in the workflow.
 */
export function fillWorkflow(
  workflow: Workflow,
  values: PlaceholderValues,
): { workflow: Workflow; unfilled: string[] } {
  const unfilled = new Set<string>();
  const findValue = (name: string) => {
    if (Object.hasOwn(values, name)) return values[name];
    unfilled.add(name);
    return undefined;
  };
  const filled = mapTexts(workflow, (text) => {
    const whole = WHOLE.exec(text)?.[1];
    if (whole !== undefined) return findValue(whole) ?? text;
    // One pass, so that %seed% inside a prompt isn't replaced.
    return text.replace(ANYWHERE, (placeholder, name: string) => String(findValue(name) ?? placeholder));
  });
  return { workflow: filled as Workflow, unfilled: [...unfilled].sort() };
}

function mapTexts(value: unknown, change: (text: string) => string | number): unknown {
  if (typeof value === "string") return change(value);
  if (Array.isArray(value)) return value.map((item) => mapTexts(item, change));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, mapTexts(item, change)]));
}
