/** How the page looks on this device. */
import { Field } from "../../components/Field.tsx";
import { TEXT_SIZES, type Theme } from "../../state/device.ts";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";

/** Every change shows at once. */
export function GeneralPage() {
  const { device } = useStore();
  const t = texts.general;
  const themes = Object.entries(t.themes) as [Theme, string][];
  return (
    <section>
      <h2>{t.look}</h2>
      <p class="muted">{t.note}</p>
      <div class="form">
        <Field id="theme" label={t.theme}>
          {() => (
            <select
              id="theme"
              value={device.theme.value}
              onChange={(e) => device.theme.value = e.currentTarget.value as Theme}
            >
              {themes.map(([value, name]) => <option key={value} value={value}>{name}</option>)}
            </select>
          )}
        </Field>
        <Field id="size" label={t.size}>
          {() => (
            <select
              id="size"
              value={String(device.textSize.value)}
              onChange={(e) => device.textSize.value = Number(e.currentTarget.value)}
            >
              {TEXT_SIZES.map((size) => <option key={size} value={String(size)}>{t.percent(size)}</option>)}
            </select>
          )}
        </Field>
        <Field id="reading" label={t.reading}>
          {() => (
            <select
              id="reading"
              value={device.isSerif.value ? "serif" : "sans"}
              onChange={(e) => device.isSerif.value = e.currentTarget.value === "serif"}
            >
              <option value="sans">{t.sans}</option>
              <option value="serif">{t.serif}</option>
            </select>
          )}
        </Field>
        <Field id="hue" label={t.hue}>
          {() => (
            <input
              id="hue"
              class="hue"
              type="range"
              min={0}
              max={360}
              step={5}
              value={device.hue.value}
              onInput={(e) => device.hue.value = Number(e.currentTarget.value)}
            />
          )}
        </Field>
        <p class="prose sample">{t.sample}</p>
      </div>
    </section>
  );
}
