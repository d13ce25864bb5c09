/** The form to run a model. */
import type { LocalModel } from "../../api/types.ts";
import { useState } from "preact/hooks";
import { Button } from "../../components/Button.tsx";
import { Dialog } from "../../components/overlays/Dialog.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { Switch } from "../../components/forms/Switch.tsx";
import type { Models } from "../../state/connections/models.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

const MAX_IDLE_MINUTES = 10_080; // API document: a week

/** Asks for context size, layers and patience; closes when it has started or is left. */
export function RunDialog({ models, model, onClose }: { models: Models; model: LocalModel; onClose: () => void }) {
  const store = useStore();
  const t = texts.models;
  const most = model.context_size;
  const [context, setContext] = useState(String(Math.min(most ?? 8192, 8192)));
  const [layers, setLayers] = useState("");
  const [idle, setIdle] = useState("30");
  const [activate, setActivate] = useState(true);
  const isContextGood = /^\d{3,8}$/.test(context) && Number(context) >= 256;
  const areLayersGood = /^\d{0,4}$/.test(layers);
  const isIdleGood = /^\d{1,5}$/.test(idle) && Number(idle) <= MAX_IDLE_MINUTES;
  const isGood = isContextGood && areLayersGood && isIdleGood;
  const start = () => {
    if (!isGood) return;
    onClose();
    const gpu = layers === "" ? {} : { gpu_layers: Number(layers) };
    const request = { path: model.path, context_size: Number(context), idle_minutes: Number(idle), ...gpu, activate };
    models.run(request).catch((thrown) => store.report(thrown));
  };
  return (
    <Dialog
      title={t.runTitle(model.path.slice(model.path.lastIndexOf("/") + 1))}
      onClose={onClose}
      actions={<Button kind="primary" isDisabled={!isGood} onClick={start}>{t.start}</Button>}
    >
      <div class="form">
        <TextField
          label={t.context}
          hint={most === undefined ? undefined : t.contextHint(most.toLocaleString())}
          error={isContextGood ? undefined : t.contextBad}
          value={context}
          onInput={setContext}
          inputMode="numeric"
          hasFocus
        />
        <TextField
          label={t.layers}
          hint={model.layers === undefined ? t.layersHint : `${t.layersHint} ${t.layersOf(model.layers)}`}
          error={areLayersGood ? undefined : t.layersBad}
          value={layers}
          onInput={setLayers}
          inputMode="numeric"
        />
        <TextField
          label={t.idle}
          hint={t.idleHint}
          error={isIdleGood ? undefined : t.idleBad}
          value={idle}
          onInput={setIdle}
          inputMode="numeric"
        />
        <Switch label={t.activate} isOn={activate} onChange={setActivate} />
      </div>
    </Dialog>
  );
}
