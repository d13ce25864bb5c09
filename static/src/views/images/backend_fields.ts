/** The fields of an image backend's form, and what becomes of them. */
import type { BackendKind, ImageBackend, ImageBackendInput } from "../../api/types.ts";

/** What stands in the form. */
export interface BackendFields {
  kind: BackendKind;
  name: string;
  baseUrl: string;
  apiKey: string;
  checkpoint: string;
  workflowId: string;
  negative: string;
  width: string;
  height: string;
  steps: string;
  cfgScale: string;
  sampler: string;
  scheduler: string;
}

/** Numbers of the form and what they may be. API document, `ImageProfileInput` */
export const NUMBERS = {
  width: { min: 16, max: 8192, isWhole: true },
  height: { min: 16, max: 8192, isWhole: true },
  steps: { min: 1, max: 1000, isWhole: true },
  cfgScale: { min: 0, max: 100, isWhole: false },
} as const;

/** Where the kinds listen unless told. */
const DEFAULT_URLS: Record<BackendKind, string> = {
  comfyui: "http://127.0.0.1:8188",
  a1111: "http://127.0.0.1:7860",
};

/** Gives the fields of a saved backend, or of a new one. */
export function toBackendFields(backend: ImageBackend | undefined): BackendFields {
  const defaults = backend?.defaults ?? {};
  const kind = backend?.kind ?? "comfyui";
  return {
    kind,
    name: backend?.name ?? "",
    baseUrl: backend?.base_url ?? DEFAULT_URLS[kind],
    apiKey: "",
    checkpoint: backend?.checkpoint ?? "",
    workflowId: backend?.workflow_id ?? "",
    negative: defaults.negative_prompt ?? "",
    width: String(defaults.width ?? ""),
    height: String(defaults.height ?? ""),
    steps: String(defaults.steps ?? ""),
    cfgScale: String(defaults.cfg_scale ?? ""),
    sampler: defaults.sampler ?? "",
    scheduler: defaults.scheduler ?? "",
  };
}

/** Gives the fields with another kind; an address that nobody changed follows it. */
export function setKind(fields: BackendFields, kind: BackendKind): BackendFields {
  const isUntouched = fields.baseUrl === DEFAULT_URLS[fields.kind] || fields.baseUrl.trim() === "";
  return { ...fields, kind, baseUrl: isUntouched ? DEFAULT_URLS[kind] : fields.baseUrl };
}

/** Gives the names of the fields that hold what they cannot. */
export function findInvalidFields(fields: BackendFields): Set<keyof BackendFields> {
  const bad = new Set<keyof BackendFields>();
  if (fields.baseUrl.trim() === "") bad.add("baseUrl");
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    const text = fields[name].trim();
    const { min, max, isWhole } = NUMBERS[name];
    const value = Number(text.replace(",", "."));
    const isGood = text === "" || (value >= min && value <= max && (!isWhole || Number.isInteger(value)));
    if (!isGood) bad.add(name);
  }
  return bad;
}

/** Gives what is sent. An empty key keeps the stored one. */
export function toBackendInput(fields: BackendFields, id: string | undefined): ImageBackendInput {
  const number = (text: string) => text.trim() === "" ? null : Number(text.replace(",", "."));
  return {
    ...(id !== undefined && { id }),
    kind: fields.kind,
    name: fields.name.trim() || null,
    base_url: fields.baseUrl.trim(),
    checkpoint: fields.checkpoint.trim() || null,
    workflow_id: fields.kind === "comfyui" ? fields.workflowId || null : null,
    defaults: {
      negative_prompt: fields.negative.trim() || null,
      width: number(fields.width),
      height: number(fields.height),
      steps: number(fields.steps),
      cfg_scale: number(fields.cfgScale),
      sampler: fields.sampler.trim() || null,
      scheduler: fields.scheduler.trim() || null,
    },
    ...(fields.apiKey.trim() !== "" && { api_key: fields.apiKey.trim() }),
  };
}
