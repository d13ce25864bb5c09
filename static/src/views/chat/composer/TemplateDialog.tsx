/** Asks for the variables of a prompt template. */
import { useState } from "preact/hooks";
import type { PromptTemplate } from "../../../api/types.ts";
import { Button } from "../../../components/Button.tsx";
import { TextField } from "../../../components/forms/Field.tsx";
import { Dialog } from "../../../components/overlays/Dialog.tsx";
import { fillVariables, listVariables } from "../../../state/chat/prompt_templates.ts";
import { texts } from "../../../texts/texts.ts";

/** One field for each variable. What stays empty stays a variable in the text. */
export function TemplateDialog(
  { template, onInsert, onClose }: {
    template: PromptTemplate;
    onInsert: (text: string) => void;
    onClose: () => void;
  },
) {
  const [values, setValues] = useState<Record<string, string>>({});
  const insert = () => onInsert(fillVariables(template.text, values));
  return (
    <Dialog
      title={template.name}
      onClose={onClose}
      actions={<Button kind="primary" onClick={insert}>{texts.promptTemplates.insert}</Button>}
    >
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          insert();
        }}
      >
        {listVariables(template.text).map((name, index) => (
          <TextField
            key={name}
            label={name}
            value={values[name] ?? ""}
            hasFocus={index === 0}
            onInput={(value) => setValues((before) => ({ ...before, [name]: value }))}
          />
        ))}
        <button type="submit" hidden />
      </form>
    </Dialog>
  );
}
