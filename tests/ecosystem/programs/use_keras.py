"""Training a model with Keras on its JAX backend, saving and loading it."""

import json
import os
import tempfile

os.environ["KERAS_BACKEND"] = "jax"

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.default_rng(0).normal(size=(128, 8, 8, 1)).astype("float32")
y = (x.mean((1, 2, 3)) > 0).astype("int32")
model = keras.Sequential([
    keras.layers.Input((8, 8, 1)), keras.layers.Conv2D(4, 3, activation="relu"),
    keras.layers.BatchNormalization(), keras.layers.Flatten(), keras.layers.Dropout(0.1),
    keras.layers.Dense(2)])
model.compile(keras.optimizers.Adam(1e-2), metrics=["accuracy"],
              loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
history = model.fit(x, y, epochs=3, batch_size=32, verbose=0).history
with tempfile.TemporaryDirectory() as folder:
    place = os.path.join(folder, "model.keras")
    model.save(place)
    loaded = keras.models.load_model(place)
same = bool(np.array_equal(loaded.predict(x[:4], verbose=0), model.predict(x[:4], verbose=0)))

tokens = np.arange(48).reshape(4, 12) % 7
attending = keras.Sequential([
    keras.layers.Input((12,), dtype="int32"), keras.layers.Embedding(7, 8),
    keras.layers.LSTM(8, return_sequences=True), keras.layers.LayerNormalization()])
attended = keras.layers.MultiHeadAttention(2, 4)(attending(tokens), attending(tokens))
print(json.dumps({
    "loss": [float(v) for v in history["loss"]],
    "accuracy": [float(v) for v in history["accuracy"]],
    "evaluated": [float(v) for v in loaded.evaluate(x, y, verbose=0)], "same": same,
    "attended": [float(v) for v in np.asarray(attended)[0, :3].mean(-1)]}))
