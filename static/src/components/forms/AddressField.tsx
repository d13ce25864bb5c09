/** The field of a server's address. A missing scheme is added when the field is left. */
import { completeScheme } from "../../../../services/http/address_scheme.ts";
import { TextField, type TextFieldProps } from "./Field.tsx";

/** A text field whose text becomes a URL. */
export function AddressField(props: Omit<TextFieldProps, "type" | "inputMode" | "onChange">) {
  const complete = (text: string) => {
    const completed = completeScheme(text);
    if (completed !== text) props.onInput(completed);
  };
  return <TextField {...props} type="url" inputMode="url" onChange={complete} />;
}
