/** The form of an image backend, with Test and Save. */
import { useEffect, useRef, useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import type { BackendDetection, BackendKind, Checkpoint, ImageBackend, ImageBackendInput } from "../../api/types.ts";
import { Drafted, useFormDraft } from "../../components/forms/Drafted.tsx";
import { Button, LinkButton } from "../../components/Button.tsx";
import { EmptyState, ErrorNote, Notice } from "../../components/Notice.tsx";
import { ApiKeyField } from "../../components/forms/ApiKeyField.tsx";
import { AddressField } from "../../components/forms/AddressField.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { ServerForm } from "../../components/forms/ServerForm.tsx";
import { Select } from "../../components/forms/inputs.tsx";
import type { BackendCheck, ImageBackends } from "../../state/connections/image_backends.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import { Finding } from "./BackendCard.tsx";
import { useFormRequests } from "../hooks.tsx";

const KINDS: readonly BackendKind[] = ["comfyui", "a1111"];

/** The form, once its connection is loaded. */
export function BackendFormPage({ backends, item }: { backends: ImageBackends; item: string }) {
  const t = texts.images;
  const items = backends.items.value;
  const backend = items?.find(({ id }) => id === item);
  if (item !== "new" && backend === undefined) {
    const error = backends.error.value;
    if (error) return <ErrorNote title={t.loadFailed} error={error} onRetry={() => void backends.refresh()} />;
    if (items === undefined) return <p class="muted" role="status">{texts.loading}</p>;
    return (
      <EmptyState title={t.missing}>
        <LinkButton href="/settings/images">{t.title}</LinkButton>
      </EmptyState>
    );
  }
  return (
    <>
      <h2>{backend ? t.editTitle : t.add}</h2>
      <BackendForm key={item} backends={backends} backend={backend} />
    </>
  );
}

function BackendForm({ backends, backend }: { backends: ImageBackends; backend: ImageBackend | undefined }) {
  const store = useStore();
  const t = texts.images;
  const [fields, setFields] = useState(() => toBackendFields(backend));
  const [check, setCheck] = useState<BackendCheck>();
  const { busy, failure, run } = useFormRequests<"save" | "clear">();
  const [checkpoints, setCheckpoints] = useState<Checkpoint[]>([]);
  const [detection, setDetection] = useState<BackendDetection | "running">();
  const [isKindChosen, setKindChosen] = useState(false);
  /** The running or last detection; Save waits for it. Resolves to the detected kind. */
  const detecting = useRef<Promise<BackendKind | undefined>>(Promise.resolve(undefined));
  useEffect(() => {
    if (backend) void backends.checkpoints(backend.id).then(setCheckpoints);
  }, [backend?.id]);
  const draft = useFormDraft(`image_backend:${backend?.id ?? "new"}`);
  const bad = findInvalidFields(fields);
  const set = (changes: Partial<BackendFields>) => {
    setFields((before) => ({ ...before, ...changes }));
    if ("baseUrl" in changes || "apiKey" in changes) setCheck(undefined);
    if ("baseUrl" in changes) {
      setDetection(undefined);
      detecting.current = Promise.resolve(undefined);
    }
  };
  const detect = () => {
    if (fields.baseUrl.trim() === "") return;
    setDetection("running");
    const current = backends.api.detectBackend(fields.baseUrl).then((found) => {
      if (detecting.current !== current) return undefined; // for an earlier address
      setDetection(found);
      if (found.kind === undefined || isKindChosen) return undefined;
      const { kind } = found;
      setFields((now) => ({ ...now, kind }));
      return kind;
    }).catch(() => {
      // Test and Save report problems with the address.
      if (detecting.current === current) setDetection(undefined);
      return undefined;
    });
    detecting.current = current;
  };
  const test = async () => {
    setCheck({ kind: "running" });
    try {
      setCheck({ kind: "done", result: await backends.api.testBackend(toBackendInput(fields, backend?.id)) });
    } catch (thrown) {
      setCheck({ kind: "failed", error: asApiError(thrown) });
    }
  };
  const save = async () => {
    if (bad.size > 0) return;
    await run("save", async () => {
      const kind = await detecting.current ?? fields.kind;
      await backends.save(toBackendInput({ ...fields, kind }, backend?.id));
      draft.clear();
      store.toasts.show(t.saved);
      store.router.go("/settings/images");
    });
  };
  /** Only of the saved backend: other changes have their own button. */
  const clearKey = (saved: ImageBackend) =>
    run("clear", async () => {
      await backends.clearKey(saved);
      setCheck(undefined);
      store.toasts.show(texts.form.keyCleared);
    });
  return (
    <ServerForm onSubmit={save}>
      <Drafted draft={draft}>
        <div onChange={detect}>
          <AddressField
            label={texts.form.url}
            hint={t.urlHints[fields.kind]}
            error={bad.has("baseUrl") ? texts.form.urlBad : undefined}
            isRequired
            value={fields.baseUrl}
            onInput={(baseUrl) => set({ baseUrl })}
          />
        </div>
        <Detected detection={detection} kind={fields.kind} />
        <Select
          label={t.kind}
          value={fields.kind}
          options={KINDS.map((value) => ({ value, name: t.kinds[value] }))}
          onChange={(kind) => {
            setFields((before) => setKind(before, kind));
            setKindChosen(true);
            setCheck(undefined);
          }}
        />
        <TextField label={texts.form.name} maxLength={200} value={fields.name} onInput={(name) => set({ name })} />
        <ApiKeyField
          id="image-key"
          keyState={{ stored: backend, address: fields.baseUrl, typed: fields.apiKey }}
          hint={t.keyHints[fields.kind]}
          onInput={(apiKey) => set({ apiKey })}
          onClear={backend && (() => void clearKey(backend))}
        />
        {fields.kind === "comfyui" && <WorkflowField backends={backends} fields={fields} onChange={set} />}
        <TextField
          isMono
          label={t.checkpoint}
          hint={t.checkpointHint}
          list={checkpoints.map(({ name }) => name)}
          value={fields.checkpoint}
          onInput={(checkpoint) => set({ checkpoint })}
        />
        <ImageDefaults fields={fields} bad={bad} onChange={set} />
      </Drafted>
      <Finding check={check} />
      {failure && <ErrorNote title={texts.form.saveFailed} error={failure.error} />}
      <div class="actions-row">
        <Button type="submit" kind="primary" isBusy={busy === "save"} isDisabled={bad.size > 0}>
          {texts.form.save}
        </Button>
        <Button isBusy={check?.kind === "running"} onClick={() => void test()}>{texts.connections.test}</Button>
        <LinkButton href="/settings/images" kind="quiet" onClick={() => draft.clear()}>{texts.cancel}</LinkButton>
      </div>
    </ServerForm>
  );
}

/** What the server at the address is. */
function Detected({ detection, kind }: { detection: BackendDetection | "running" | undefined; kind: BackendKind }) {
  const t = texts.images;
  if (detection === undefined) return null;
  if (detection === "running") return <p class="muted" role="status">{t.detecting}</p>;
  const { kind: found, hint, reachable } = detection;
  if (found === undefined) return <Notice tone="warning">{reachable ? t.notDetected : t.noResponse}</Notice>;
  const name = t.kinds[found];
  if (found !== kind) return <Notice tone="warning">{t.otherDetected(name)}</Notice>;
  return <Notice tone="info">{hint === undefined ? t.detected(name) : `${name}: ${t.hints[hint]}`}</Notice>;
}

interface PartProps {
  fields: BackendFields;
  onChange: (changes: Partial<BackendFields>) => void;
}

function WorkflowField({ backends, fields, onChange }: PartProps & { backends: ImageBackends }) {
  const usable = (backends.workflows.value ?? []).filter(({ problem }) => problem === undefined);
  const options = usable.map(({ id, name, builtin }) => ({
    value: builtin ? "" : id,
    name: builtin ? texts.images.starter : name,
  }));
  const isKnown = options.some(({ value }) => value === fields.workflowId);
  return (
    <Select
      label={texts.images.workflow}
      hint={texts.images.workflowHint}
      value={fields.workflowId}
      options={isKnown ? options : [...options, { value: fields.workflowId, name: fields.workflowId }]}
      onChange={(workflowId) => onChange({ workflowId })}
    />
  );
}

/** Defaults of image generation. */
function ImageDefaults({ fields, bad, onChange }: PartProps & { bad: Set<keyof BackendFields> }) {
  const t = texts.images;
  const number = (name: keyof typeof NUMBERS, label: string) => {
    const { min, max } = NUMBERS[name];
    return (
      <TextField
        inputMode={NUMBERS[name].isWhole ? "numeric" : "decimal"}
        label={label}
        placeholder={t.standards[name]}
        error={bad.has(name) ? texts.chatOptions.options.bad(min, max) : undefined}
        value={fields[name]}
        onInput={(text) => onChange({ [name]: text })}
      />
    );
  };
  return (
    <fieldset class="image-defaults">
      <legend>{t.drawn}</legend>
      <TextField
        rows={2}
        label={t.negative}
        hint={t.negativeHint}
        value={fields.negative}
        onInput={(negative) => onChange({ negative })}
      />
      <div class="images-numbers">
        {number("width", t.width)}
        {number("height", t.height)}
        {number("steps", t.steps)}
        {number("cfgScale", t.cfgScale)}
        <TextField label={t.sampler} isMono value={fields.sampler} onInput={(sampler) => onChange({ sampler })} />
        <TextField
          label={t.scheduler}
          isMono
          value={fields.scheduler}
          onInput={(scheduler) => onChange({ scheduler })}
        />
      </div>
    </fieldset>
  );
}

/** The form as typed. */
interface BackendFields {
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
const NUMBERS = {
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
function toBackendFields(backend: ImageBackend | undefined): BackendFields {
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
function setKind(fields: BackendFields, kind: BackendKind): BackendFields {
  const isUntouched = fields.baseUrl === DEFAULT_URLS[fields.kind] || fields.baseUrl.trim() === "";
  return { ...fields, kind, baseUrl: isUntouched ? DEFAULT_URLS[kind] : fields.baseUrl };
}

/** Returns the names of the invalid fields. */
function findInvalidFields(fields: BackendFields): Set<keyof BackendFields> {
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
function toBackendInput(fields: BackendFields, id: string | undefined): ImageBackendInput {
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
