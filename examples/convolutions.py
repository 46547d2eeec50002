# ---
# jupyter:
#   jupytext:
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Convolutions
#
# From smoothing a curve to transposed convolutions in three dimensions: what `jnp.convolve`,
# `scipy.signal.convolve` and `lax.conv_general_dilated` do, and how the last one is told the
# order of axes, strides, padding and dilation.
#
# | function | for |
# |---|---|
# | `jnp.convolve`, `jnp.correlate` | one axis |
# | `scipy.signal.convolve`, `correlate`, `convolve2d`, `correlate2d` | any number of axes |
# | `lax.conv_general_dilated` | batches and channels, as in neural networks |

# %%
import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_sample_image

import pyjx as jax
import pyjx.numpy as jnp
import pyjx.scipy as jsp
from pyjx import lax, random

# %% [markdown]
# ## One axis
# A noisy curve and its mean over ten neighbours. With `mode="same"` the result is as long as the
# input.

# %%
key = random.key(1701)
x = jnp.linspace(0, 10, 500)
y = jnp.sin(x) + 0.2 * random.normal(key, shape=(500,))
window = jnp.ones(10) / 10
y_smooth = jnp.convolve(y, window, mode="same")
print(y_smooth[100:104])

plt.plot(x, y, "lightgray")
plt.plot(x, y_smooth, "black")
plt.show()

# %% [markdown]
# ## Any number of axes
# The same for an image, with a window that falls off like a normal distribution.

# %%
image = jnp.array(load_sample_image("china.jpg").mean(-1))  # the mean of the colours is gray
noisy_image = image + 50 * random.normal(random.key(1701), image.shape)

x = jnp.linspace(-3, 3, 7)
window = jsp.stats.norm.pdf(x) * jsp.stats.norm.pdf(x[:, None])
smooth_image = jsp.signal.convolve(noisy_image, window, mode="same")
print(f"distance to the original: {jnp.std(noisy_image - image):.1f} with noise, "
      f"{jnp.std(smooth_image - image):.1f} smoothed")

fig, axes = plt.subplots(1, 3, figsize=(12, 5))
for ax, picture, title in zip(axes, (image, noisy_image, smooth_image),
                              ("original", "noisy", "smoothed"), strict=True):
    ax.imshow(picture, cmap="gray")
    ax.set_title(title)
plt.show()

# %% [markdown]
# ## Batches and channels
# Neural networks convolve many images at once, and each output channel sums over all input
# channels. Our kernel finds diagonal edges, from each of three channels to each of three.

# %%
kernel = jnp.zeros((3, 3, 3, 3), dtype=jnp.float32)  # HWIO
kernel += jnp.array([[1, 1, 0],
                     [1, 0, -1],
                     [0, -1, -1]])[:, :, jnp.newaxis, jnp.newaxis]

img = jnp.zeros((1, 200, 198, 3), dtype=jnp.float32)  # NHWC
for k in range(3):
    x, y = 30 + 60 * k, 20 + 60 * k
    img = img.at[0, x:x + 10, y:y + 10, k].set(1.0)

fig, (left, right) = plt.subplots(1, 2, figsize=(8, 4))
left.imshow(kernel[:, :, 0, 0])
left.set_title("kernel")
right.imshow(img[0])
right.set_title("image")
plt.show()

# %% [markdown]
# Letters name the axes: **N** the batch, **H** and **W** height and width, **C** channels; in a
# kernel **I** and **O** are the channels that come in and go out.
#
# Two short functions fix the order of axes, NCHW for images and OIHW for kernels:


# %%
def show(out, channel_last=True):
    """The first channel of the first image."""
    plt.figure(figsize=(4, 4))
    plt.imshow(out[0, :, :, 0] if channel_last else out[0, 0])
    plt.show()


out = lax.conv(jnp.transpose(img, [0, 3, 1, 2]),     # NCHW
               jnp.transpose(kernel, [3, 2, 0, 1]),  # OIHW
               (1, 1),                               # strides
               "SAME")                               # padding
print("out shape:", out.shape)
show(out, channel_last=False)

# %%
out = lax.conv_with_general_padding(
    jnp.transpose(img, [0, 3, 1, 2]),
    jnp.transpose(kernel, [2, 3, 0, 1]),
    (1, 1),
    ((2, 2), (2, 2)),  # two more rows and columns on each side
    (1, 1),            # dilation of the image
    (1, 1))            # dilation of the kernel
print("out shape:", out.shape)
show(out, channel_last=False)

# %% [markdown]
# ## The general function
# `conv_general_dilated` takes the order of axes as three words: of the image, of the kernel and of
# the result.

# %%
dn = lax.conv_dimension_numbers(img.shape, kernel.shape,  # only their ranks matter
                                ("NHWC", "HWIO", "NHWC"))
print(dn)

# %% [markdown]
# `SAME` padding, no stride, no dilation:

# %%
out = lax.conv_general_dilated(img, kernel, (1, 1), "SAME", (1, 1), (1, 1), dn)
print("out shape:", out.shape)
show(out)

# %% [markdown]
# `VALID` padding: only where the kernel fits, so the result is two smaller.

# %%
out = lax.conv_general_dilated(img, kernel, (1, 1), "VALID", (1, 1), (1, 1), dn)
print("out shape:", out.shape, "- smaller than the image")
show(out)

# %% [markdown]
# Stride two: every second position, so half the size.

# %%
out = lax.conv_general_dilated(img, kernel, (2, 2), "SAME", (1, 1), (1, 1), dn)
print("out shape:", out.shape, "- half of the image")
show(out)

# %% [markdown]
# A dilated kernel: its weights stand twelve pixels apart. It sees far at the cost of nine weights.

# %%
out = lax.conv_general_dilated(img, kernel, (1, 1), "VALID", (1, 1), (12, 12), dn)
print("out shape:", out.shape)
show(out)

# %% [markdown]
# A dilated image: zeros between its pixels, so the result is twice as large.

# %%
out = lax.conv_general_dilated(img, kernel, (1, 1), ((0, 0), (0, 0)), (2, 2), (1, 1), dn)
print("out shape:", out.shape, "- larger than the image")
show(out)

# %% [markdown]
# With the kernel turned by half a circle, and padding to match, that is the transposed
# convolution, `conv2d_transpose` of other frameworks: the derivative of the convolution with
# stride two.

# %%
kernel_rot = jnp.rot90(jnp.rot90(kernel, axes=(0, 1)), axes=(0, 1))
padding = ((2, 1), (2, 1))
out = lax.conv_general_dilated(img, kernel_rot, (1, 1), padding, (2, 2), (1, 1), dn)
print("out shape:", out.shape, "- transposed")
show(out)


# %%
def strided(x):
    return lax.conv_general_dilated(x, kernel, (2, 2), "SAME", dimension_numbers=dn)


_, pull = jax.vjp(strided, jnp.zeros(out.shape))
turned = jnp.swapaxes(kernel_rot, 2, 3)  # backwards, channels change their roles
derivative = lax.conv_general_dilated(img, turned, (1, 1), padding, (2, 2), (1, 1), dn)
print("is the derivative:", bool(jnp.allclose(pull(img)[0], derivative, atol=1e-5)))

# %% [markdown]
# ## One axis, with channels

# %%
kernel = jnp.array([[[1, 0, -1], [-1, 0, 1]],
                    [[1, 1, 1], [-1, -1, -1]]],
                   dtype=jnp.float32).transpose([2, 1, 0])  # WIO
data = np.zeros((1, 200, 2), dtype=np.float32)  # NWC
for i in range(2):
    for k in range(2):
        x = 35 * i + 30 + 60 * k
        data[0, x:x + 30, k] = 1.0
print("in shapes:", data.shape, kernel.shape)

dn = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NWC", "WIO", "NWC"))
print(dn)
out = lax.conv_general_dilated(data, kernel, (1,), "SAME", (1,), (1,), dn)
print("out shape:", out.shape)

fig, (above, below) = plt.subplots(2, 1, figsize=(10, 5))
above.plot(data[0])
below.plot(out[0])
plt.show()

# %% [markdown]
# ## Three axes

# %%
kernel = jnp.array([
    [[0, 0, 0], [0, 1, 0], [0, 0, 0]],
    [[0, -1, 0], [-1, 0, -1], [0, -1, 0]],
    [[0, 0, 0], [0, 1, 0], [0, 0, 0]]],
    dtype=jnp.float32)[:, :, :, jnp.newaxis, jnp.newaxis]  # HWDIO

data = jnp.zeros((1, 30, 30, 30, 1), dtype=jnp.float32)  # NHWDC
x, y, z = np.mgrid[0:1:30j, 0:1:30j, 0:1:30j]
data += (jnp.sin(2 * x * jnp.pi) * jnp.cos(2 * y * jnp.pi)
         * jnp.cos(2 * z * jnp.pi))[None, :, :, :, None]
print("in shapes:", data.shape, kernel.shape)

dn = lax.conv_dimension_numbers(data.shape, kernel.shape, ("NHWDC", "HWDIO", "NHWDC"))
print(dn)
out = lax.conv_general_dilated(data, kernel, (1, 1, 1), "SAME", (1, 1, 1), (1, 1, 1), dn)
print("out shape:", out.shape)


# %%
def faded(cmap):
    """The colours of a map, the lower ones nearly transparent."""
    colours = cmap(np.arange(cmap.N))
    colours[:, -1] = jnp.linspace(0, 1, cmap.N) ** 3
    return mpl.colors.ListedColormap(colours)


fig = plt.figure(figsize=(10, 5))
for i, (title, values) in enumerate((("input", data), ("3D conv output", out))):
    ax = fig.add_subplot(1, 2, i + 1, projection="3d")
    ax.scatter(x.ravel(), y.ravel(), z.ravel(), c=np.asarray(values).ravel(),
               cmap=faded(plt.cm.viridis))
    ax.axis("off")
    ax.set_title(title)
plt.show()
