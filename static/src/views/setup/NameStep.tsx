/** The second step: how the person is called. */
import { useState } from "preact/hooks";
import { asApiError } from "../../api/client.ts";
import { Button } from "../../components/Button.tsx";
import { TextField } from "../../components/forms/Field.tsx";
import { useStore } from "../../state/store.ts";
import { texts } from "../../texts/texts.ts";
import type { StepProps } from "./SetupScreen.tsx";

/** Asks for the name; one that was given before stands there. */
export function NameStep({ onNext }: StepProps) {
  const { preferences } = useStore();
  const t = texts.welcome;
  const [typed, setTyped] = useState<string>();
  const [failure, setFailure] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const name = typed ?? preferences.settings.value?.display_name ?? "";
  const save = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await preferences.change({ display_name: name.trim() });
      onNext();
    } catch (thrown) {
      setFailure(asApiError(thrown).message);
    }
    setBusy(false);
  };
  return (
    <form
      class="form"
      onSubmit={(event) => {
        event.preventDefault();
        if (name.trim() === "") onNext();
        else void save();
      }}
    >
      <TextField
        label={texts.general.displayName}
        hint={t.nameHint}
        error={failure}
        autocomplete="nickname"
        maxLength={100}
        value={name}
        onInput={setTyped}
      />
      <div class="gate-actions">
        <Button type="submit" kind="primary" isBusy={isBusy}>{t.goOn}</Button>
        <Button kind="quiet" onClick={onNext}>{t.skip}</Button>
      </div>
    </form>
  );
}
