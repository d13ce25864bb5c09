/** The form of an image backend and its conversion to the API. */
import type { BackendKind, ImageBackend, ImageBackendInput } from "../../api/types.ts";

/** The form as typed. */
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

/** Numeric fields and their limits. API document, `ImageProfileInput` */
export const NUMBERS = {
  width: { min: 16, max: 8192, isWhole: true },
  height: { min: 16, max: 8192, isWhole: true },
  steps: { min: 1, max: 1000, isWhole: true },
  cfgScale: { min: 0, max: 100, isWhole: false },
} as const;

/** Default addresses of the kinds. */
const DEFAULT_URLS: Record<BackendKind, string> = {
  comfyui: "http://127.0.0.1:8188",
  a1111: "http://127.0.0.1:7860",
};

/** Returns the form of a saved backend, or of a new one. */
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

/** Changes the kind; an unchanged default address follows it. */
export function setKind(fields: BackendFields, kind: BackendKind): BackendFields {
  const isUntouched = fields.baseUrl === DEFAULT_URLS[fields.kind] || fields.baseUrl.trim() === "";
  return { ...fields, kind, baseUrl: isUntouched ? DEFAULT_URLS[kind] : fields.baseUrl };
}

/** Returns the names of the invalid fields. */
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

/** Returns the API input. An empty key keeps the stored one. */
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
